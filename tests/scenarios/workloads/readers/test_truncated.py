"""A truncated trace is reported as truncated wherever its format shows it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scenarios.errors import UserError
from scenarios.trace.convert import to_parquet
from scenarios.workloads.readers.detect import read
from scenarios.workloads.repairs import OnError

HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
ROWS = [
    {"timestamp": 1000.0 * i, "input_length": 512, "output_length": 10, "hash_ids": [i], "note": "caf\u00e9"}
    for i in range(3)
]


@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_file_cut_anywhere_is_reported_as_truncated(tmp_path: Path, indent: int | None) -> None:
    content = json.dumps(ROWS, indent=indent, ensure_ascii=False).encode()
    path = tmp_path / "t.json"
    path.write_bytes(content)
    assert read(path).requests == 3
    for end in range(1, len(content)):
        path.write_bytes(content[:end])
        with pytest.raises(UserError, match="the file is truncated"):
            read(path)


def test_a_truncated_last_line_of_json_is_reported_as_truncated_or_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS)[:-9], encoding="utf-8")
    with pytest.raises(UserError, match=r"t\.jsonl:3: the JSON value is not closed: the file is truncated"):
        read(path)
    corpus = read(path, on_error="skip")
    assert (corpus.requests, corpus.repairs.entries["file truncated"].count) == (2, 1)


def test_a_last_line_of_csv_with_fewer_fields_is_reported_as_truncated_or_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEAD + "2023-11-16 18:17:04.07992", encoding="utf-8")
    with pytest.raises(UserError, match=r"t\.csv:3: the last line ends 2 of 3 fields early: the file is truncated"):
        read(path)
    corpus = read(path, on_error="skip")
    assert (corpus.requests, corpus.repairs.entries["file truncated"].count) == (1, 1)
    path.write_text(HEAD + "2023-11-16 18:17:04.07992\n2023-11-16 18:17:05.0,1,2\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"t\.csv:3: ContextTokens: missing"):
        read(path)


def test_a_last_number_of_csv_that_no_newline_ends_is_kept_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEAD + "2023-11-16 18:17:05.0,1200,345\n", encoding="utf-8")
    assert "no newline at the end" not in read(path).repairs.entries
    cut = HEAD + "2023-11-16 18:17:05.0,1200,34"
    packed = tmp_path / "t.csv.gz"
    path.write_text(cut, encoding="utf-8")
    packed.write_bytes(gzip.compress(cut.encode()))
    for form in (path, packed):
        corpus = read(form, on_error="raise")  # whole files end so too: it is no defect
        (entry,) = [e for e in corpus.repairs.entries.values() if e.kind == "no newline at the end"]
        assert corpus.requests == 2
        assert (entry.count, entry.first_at) == (1, f"{form}:3")
        assert entry.done == "kept with '34': incomplete if the file was truncated there"
    path.write_text(HEAD + '"2023-11-16 18:17:05.0","1200","345"', encoding="utf-8")
    assert "no newline at the end" not in read(path).repairs.entries


@pytest.mark.parametrize("form", ["auto", "parquet"])
@pytest.mark.parametrize("on_error", ["raise", "repair", "skip"])
def test_a_parquet_file_cut_or_overwritten_is_reported_as_truncated_or_damaged(
    tmp_path: Path, form: str, on_error: OnError
) -> None:
    source, path = tmp_path / "t.jsonl", tmp_path / "t.parquet"
    source.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    to_parquet(read(source), path)
    content = path.read_bytes()
    assert read(path, form=form, on_error=on_error).requests == 3
    for bad in (
        content[:4],
        content[:-300],
        content[:-1],
        b"PAR1" + bytes(len(content) // 3) + content[4 + len(content) // 3 :],
    ):
        path.write_bytes(bad)
        with pytest.raises(UserError, match=r"t\.parquet: the Parquet file is truncated or damaged \([^\n]*\)$"):
            read(path, form=form, on_error=on_error)


@pytest.mark.parametrize("cut_name", ["a.json", "z.json", "a.json.gz", "z.json.gz"])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_cut_file_of_a_folder_is_left_out_and_counted_wherever_it_stands(
    tmp_path: Path, cut_name: str, indent: int | None
) -> None:
    request = {"type": "n", "t": 0.0, "in": 640, "out": 10, "hash_ids": list(range(10))}
    document = {"id": "c", "block_size": 64, "hash_id_scope": "local", "requests": [request, {**request, "t": 9.0}]}
    text = json.dumps(document, indent=indent)
    (tmp_path / "m.json").write_text(text, encoding="utf-8")
    data = text.encode()
    (tmp_path / cut_name).write_bytes((gzip.compress(data) if cut_name.endswith(".gz") else data)[:-12])
    corpus = read(tmp_path, on_error="skip")
    entry = corpus.repairs.entries["file truncated"]
    assert (corpus.format, corpus.requests, entry.count, entry.done) == ("weka", 2, 1, "left out")
    assert cut_name in entry.first_at
    policies: tuple[OnError, ...] = ("repair", "raise")
    for policy in policies:
        with pytest.raises(UserError, match=rf"{cut_name}[^\n]*truncated[^\n]*$"):
            read(tmp_path, on_error=policy)
    (tmp_path / "m.json").unlink()
    with pytest.raises(UserError, match=rf"{cut_name}[^\n]*truncated[^\n]*$"):
        read(tmp_path, on_error="skip")


def test_a_csv_cut_after_its_last_comma_is_an_error_or_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEAD + "2023-11-16 18:17:05.0,1200,", encoding="utf-8")
    wrong = r"t\.csv:3: the last line ends before its last field \(GeneratedTokens\): the file may be truncated$"
    with pytest.raises(UserError, match=wrong):
        read(path)
    corpus = read(path, on_error="skip")
    assert (corpus.requests, corpus.repairs.entries["file truncated"].done) == (1, "left out")
    assert "no newline at the end" not in corpus.repairs.entries


def test_an_optional_last_field_that_rows_above_leave_empty_may_be_empty_in_the_last_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    head = "Timestamp,Request tokens,Response tokens,Elapsed time\n"
    path.write_text(head + "1,100,10,\n2,100,10,", encoding="utf-8")
    assert read(path, on_error="raise").requests == 2
    path.write_text(head + "1,100,10,3\n2,100,10,", encoding="utf-8")
    with pytest.raises(UserError, match=r"\(Elapsed time\): the file may be truncated"):
        read(path)


def test_a_cut_csv_ends_only_itself_among_a_folders_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEAD + "2023-11-16 18:17:05.0,1200", encoding="utf-8")
    (tmp_path / "b.csv").write_text(HEAD, encoding="utf-8")
    corpus = read(tmp_path, on_error="skip")
    assert (corpus.requests, corpus.repairs.entries["file truncated"].count) == (2, 1)


def test_a_number_before_a_carriage_return_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes((HEAD + "2023-11-16 18:17:05.0,1200,9\n").replace("\n", "\r\n").encode()[:-1])
    corpus = read(path)
    assert (corpus.requests, "no newline at the end" in corpus.repairs.entries) == (2, False)


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_csv_of_a_header_alone_is_reported_to_have_no_row(tmp_path: Path, end: str) -> None:
    path = tmp_path / "t.csv"
    for head in (HEAD.partition("\n")[0], "Timestamp,Request tokens,Response tokens"):
        path.write_bytes((head + end).encode())
        with pytest.raises(UserError, match=r"t\.csv: there is a header, but no row below it"):
            read(path, on_error="skip")


@pytest.mark.parametrize(("column", "value"), [("starter", "uses"), ("stop", None), ("stream", 7)])
def test_an_invalid_parquet_value_is_reported_as_damage(tmp_path: Path, column: str, value: object) -> None:
    source, path = tmp_path / "t.jsonl", tmp_path / "t.parquet"
    source.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    to_parquet(read(source), path)
    table = pq.read_table(path)
    k = table.schema.get_field_index(column)
    field = table.schema.field(k)
    pq.write_table(table.set_column(k, field, pa.array([value] * len(table), field.type)), path)
    with pytest.raises(UserError, match=r"t\.parquet: the Parquet file is truncated or damaged \(conversation"):
        read(path)
