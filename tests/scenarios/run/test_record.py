"""A run's folder: all of it or nothing, and what is read is what was written."""

from __future__ import annotations

import hashlib
import json
from array import array
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from scenarios.errors import UserError
from scenarios.run.load import load, runs_in
from scenarios.run.record import TURN_SCHEMA, RunData, RunFolder, write
from scenarios.run.sink import FolderSink
from tests.scenarios.fake_runs import fake_run


@pytest.fixture(scope="module")
def run() -> RunData:
    return fake_run(horizon_s=120.0)


def test_what_is_read_is_what_was_written(run: RunData, tmp_path: Path) -> None:
    write(tmp_path / "a", run)
    back = load(tmp_path / "a")
    pd.testing.assert_frame_equal(back.signals, run.signals)
    pd.testing.assert_frame_equal(
        back.turns.astype({"class": str, "outcome": str}), run.turns.astype({"class": str, "outcome": str})
    )
    assert list(back.turns.columns) == TURN_SCHEMA.names
    assert back.events == run.events
    assert back.summary == run.summary
    assert back.meta == run.meta
    assert back.scenario_toml == run.scenario_toml
    for name, verdict in run.verdicts.items():
        assert back.verdicts[name].to_json() == verdict.to_json()
        np.testing.assert_array_equal(back.verdicts[name].acf, verdict.acf)
        np.testing.assert_array_equal(back.verdicts[name].spectrum_hz, verdict.spectrum_hz)


def test_a_time_that_never_came_is_null_on_disk_and_nan_in_memory(run: RunData, tmp_path: Path) -> None:
    write(tmp_path / "a", run)
    back = load(tmp_path / "a").turns
    waiting = back["outcome"] == "filling"
    assert waiting.any()
    assert back.loc[waiting, "joined_s"].isna().all()


def test_blocks_and_one_write_read_the_same(run: RunData, tmp_path: Path) -> None:
    with RunFolder(tmp_path / "blocks") as folder:
        for part in np.array_split(np.arange(len(run.turns)), 3):
            folder.append_turns(run.turns.iloc[part])
        for part in np.array_split(np.arange(len(run.signals)), 2):
            folder.append_signals(run.signals.iloc[part])
        for event in run.events:
            folder.append_events([event])
        folder.finish(
            candidate=run.candidate,
            title=run.title,
            question=run.question,
            meta=run.meta,
            summary=run.summary,
            verdicts=run.verdicts,
            scenario_toml=run.scenario_toml,
        )
    write(tmp_path / "whole", run)
    blocks, at_once = load(tmp_path / "blocks"), load(tmp_path / "whole")
    pd.testing.assert_frame_equal(blocks.signals, at_once.signals)
    pd.testing.assert_frame_equal(blocks.turns, at_once.turns, check_categorical=False)
    assert blocks.events == at_once.events


def test_equal_runs_give_equal_bytes(run: RunData, tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / name, run)
    digests = [
        {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (tmp_path / name).iterdir()} for name in "ab"
    ]
    assert digests[0] == digests[1]


def test_a_folder_that_exists_is_refused_in_one_line(run: RunData, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(UserError, match="the folder exists") as refusal:
        write(tmp_path / "a", run)
    assert "\n" not in str(refusal.value)
    assert list((tmp_path / "a").iterdir()) == []


def test_a_run_that_breaks_off_leaves_nothing(run: RunData, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="output_tokens"), RunFolder(tmp_path / "a") as folder:
        folder.append_turns(run.turns.drop(columns="output_tokens"))
    assert list(tmp_path.iterdir()) == []


def test_a_fluid_run_has_a_turn_table_without_rows(run: RunData, tmp_path: Path) -> None:
    with RunFolder(tmp_path / "a") as folder:
        folder.append_signals(run.signals)
        folder.finish(candidate="c", title="", question="", meta={}, summary=run.summary, verdicts={}, scenario_toml="")
    back = load(tmp_path / "a")
    assert len(back.turns) == 0
    assert list(back.turns.columns) == TURN_SCHEMA.names
    assert back.events == []


@pytest.mark.parametrize("name", ["turns.parquet", "signals.parquet", "verdict.json", "events.jsonl.zst"])
def test_a_damaged_file_is_named(run: RunData, tmp_path: Path, name: str) -> None:
    write(tmp_path / "a", run)
    (tmp_path / "a" / name).write_bytes(b"not this")
    with pytest.raises(UserError, match=name) as refusal:
        load(tmp_path / "a")
    assert "\n" not in str(refusal.value)


def test_a_folder_of_runs_means_all_of_them_by_name(run: RunData, tmp_path: Path) -> None:
    for name in ("b", "a"):
        write(tmp_path / name, run)
    assert runs_in(tmp_path) == [tmp_path / "a", tmp_path / "b"]
    assert runs_in(tmp_path / "b") == [tmp_path / "b"]
    with pytest.raises(UserError, match="nothing of that name"):
        runs_in(tmp_path / "c")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no run's folder"):
        runs_in(tmp_path / "empty")


def test_the_recorders_chunks_become_rows(run: RunData, tmp_path: Path) -> None:
    outcomes, classes = ["retired", "filling", "ready", "decoding"], ["chat", "agent"]
    rows = run.turns.assign(
        **{
            "class": run.turns["class"].map(classes.index),
            "outcome": run.turns["outcome"].map(outcomes.index),
        }
    )
    codes = {"q": "int64", "Q": "uint64", "i": "int32", "d": "float64"}
    kinds = {pa.int64(): "q", pa.uint64(): "Q", pa.float64(): "d"}
    columns = {}
    for f in TURN_SCHEMA:
        code = kinds.get(f.type, "i")
        columns[f.name] = array(code, rows[f.name].to_numpy().astype(codes[code]).tolist())
    with RunFolder(tmp_path / "a") as folder:
        sink = FolderSink(folder)
        sink.turns(columns, classes, outcomes)
        sink.signals({name: array("d", run.signals[name].tolist()) for name in run.signals})
        sink.event(run.events[0])
        folder.finish(candidate="c", title="", question="", meta={}, summary=run.summary, verdicts={}, scenario_toml="")
    back = load(tmp_path / "a")
    words = {"class": str, "outcome": str}
    pd.testing.assert_frame_equal(back.turns.astype(words), run.turns.astype(words), check_dtype=False)
    pd.testing.assert_frame_equal(back.signals, run.signals)
    assert back.events == run.events


@pytest.fixture
def folder(run: RunData, tmp_path: Path) -> Path:
    write(tmp_path / "a", run)
    return tmp_path / "a"


def lines(folder: Path) -> str:
    with pytest.raises(UserError) as refused:
        load(folder)
    assert "\n" not in str(refused.value)
    return str(refused.value)


FILES = ("curves.parquet", "events.jsonl.zst", "scenario.toml", "signals.parquet", "turns.parquet", "verdict.json")


@pytest.mark.parametrize("name", FILES)
def test_a_record_without_one_of_its_files_names_it(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert lines(folder) == f"{folder / name}: is missing: the record is incomplete; run the scenario again"


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_a_record_with_garbage_in_one_of_its_files_names_it(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"gar bage")
    assert lines(folder).startswith(f"{folder / name}: ")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("manifest.json", ("candidate",)),
        ("verdict.json", ("summary",)),
        ("verdict.json", ("summary", "window_s")),
        ("verdict.json", ("verdict", "decode_occupancy_ratio", "period_s")),
    ],
)
def test_a_record_of_another_version_is_told_by_what_it_lacks(folder: Path, name: str, path: tuple[str, ...]) -> None:
    manifest = json.loads((folder / name).read_bytes())
    here = manifest
    for step in path[:-1]:
        here = here[step]
    del here[path[-1]]
    (folder / name).write_text(json.dumps(manifest), encoding="utf-8")
    assert f"{folder / name}: lacks {'.'.join(path)}: damaged, or by another version" in lines(folder)
    (folder / name).write_text("[1]", encoding="utf-8")
    assert f"{folder / name}: lacks" in lines(folder)


@pytest.mark.parametrize(
    ("name", "column"), [("turns.parquet", "ended_s"), ("signals.parquet", "t_s"), ("curves.parquet", "x")]
)
def test_a_table_without_a_column_names_both(folder: Path, name: str, column: str) -> None:
    pd.read_parquet(folder / name).drop(columns=column).to_parquet(folder / name)
    assert f"{folder / name}: lacks {column}" in lines(folder)
