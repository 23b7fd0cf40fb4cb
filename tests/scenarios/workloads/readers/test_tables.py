"""Any table is a trace: by its columns, and by readers for the forms that other tools write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.errors import UserError
from scenarios.workloads import derive
from scenarios.workloads.corpus import Corpus
from scenarios.workloads.readers import detect
from scenarios.workloads.readers.dates import seconds_of
from scenarios.workloads.readers.rows import ReadOptions
from tests.scenarios.workloads.kit import jsonl, kinds, text

SPEC = "arrived=ts,input=p,output=g,session=chat,end=done,unit=ms"
ROWS = [
    {"ts": 500, "p": 90, "g": 7, "chat": "x", "done": 2_500},
    {"ts": 4_500, "p": 180, "g": 9, "chat": "x", "done": 5_000},
    {"ts": 1_500, "p": 40, "g": 3, "chat": None, "done": 1_900},
]


def table(path: Path, columns: str, **more: Any) -> Corpus:
    return detect.read(path, options=ReadOptions(columns=columns, **more))


def written(folder: Path, form: str) -> Path:
    frame = pd.DataFrame(ROWS)
    path = folder / f"t.{form}"
    if form == "parquet":
        frame.to_parquet(path)
    elif form == "jsonl":
        return jsonl(folder, *ROWS)
    else:
        frame.to_csv(path, index=False, sep={"csv": ",", "txt": ";", "tsv": "\t"}[form])
    return path


@pytest.mark.parametrize("form", ["csv", "txt", "tsv", "jsonl", "parquet"])
def test_one_table_in_every_form_is_one_trace(tmp_path: Path, form: str) -> None:
    corpus = table(written(tmp_path, form), SPEC)
    talk, alone = corpus.conversations
    assert (talk.start_s, talk.streams[0].t_s.tolist()) == (0.0, [0.0, 4.0])
    assert talk.streams[0].service_s.tolist() == [2.0, 0.5]
    assert talk.streams[0].prompt_tokens.tolist() == [90, 180]
    assert (alone.streams[0].relation, alone.streams[0].t_s.tolist()) == ("independent", [1.0])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("input=a", "output missing"),
        ("input=a,output=b", "arrived or session missing"),
        ("input=a,output=b,arived=c", "no field arived .did you mean `arrived`"),
        ("input=a,output=b,arrived=c,unit=min", "unit=min; one of s, ms, us, ns"),
        ("input=a,input=b,output=c,arrived=d", "given twice"),
        ("input", "field=column was expected"),
        ("arrived=ts,input=nope,output=g", r"t\.jsonl:1: nope: missing"),
    ],
)
def test_columns_that_do_not_fit_are_refused_in_one_line(tmp_path: Path, columns: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        table(jsonl(tmp_path, *ROWS), columns)


def test_a_dot_reaches_into_an_object_and_ids_are_blocks(tmp_path: Path) -> None:
    rows = [{"t": k, "usage": {"in": 128, "out": 5}, "blocks": [1, 2 + k]} for k in range(2)]
    corpus = table(jsonl(tmp_path, *rows), "arrived=t,input=usage.in,output=usage.out,ids=blocks")
    assert derive.hit_token_ratio(corpus) == 0.25


@given(days=st.lists(st.integers(1, 28), min_size=2, max_size=12), month=st.integers(1, 12))
@settings(max_examples=25)
def test_day_first_dates_are_read_as_days_or_refused_and_never_scrambled(days: list[int], month: int) -> None:
    ordered = sorted(days)
    stamps = [f"{day:02d}/{month:02d}/2026 08:30:00" for day in ordered]
    want = [float((day - ordered[0]) * 86_400) for day in ordered]
    if len(set(ordered)) > 1 and ordered[-1] <= 12:
        with pytest.raises(UserError, match="day first or month first"):
            seconds_of(stamps, 1.0, stamps)
        return
    got = seconds_of(stamps, 1.0, stamps)
    assert (got - got[0]).tolist() == want


@pytest.mark.parametrize(
    "stamps",
    [
        ["2026-01-31T08:00:00Z", "2026-01-31T08:00:05.5Z"],
        ["2026-01-31 08:00:00.0000000", "2026-01-31 08:00:05.5000000"],
        ["Jan 31 2026 08:00:00", "Jan 31 2026 08:00:05.5"],
        ["31.01.26 08:00:00", "31.01.26 08:00:05.5"],
        ["1/31/2026 8:00:00 AM", "1/31/2026 8:00:05.5 AM"],
        ["1769846400", "1769846405.5"],
    ],
)
def test_dates_as_tools_write_them(stamps: list[str]) -> None:
    got = seconds_of(stamps, 1.0, stamps)
    assert got.tolist() == pytest.approx([1_769_846_400.0, 1_769_846_405.5])


def test_dates_on_two_clocks_and_texts_that_are_none_are_refused() -> None:
    with pytest.raises(UserError, match="b: times with and without an offset"):
        seconds_of(["2026-01-31T08:00:00Z", "2026-01-31T08:00:00"], 1.0, ["a", "b"])
    with pytest.raises(UserError, match="b: 'soon' is no"):
        seconds_of(["2026-01-31T08:00:00", "soon"], 1.0, ["a", "b"])
    with pytest.raises(UserError, match="b: 'soon' is no number"):
        seconds_of([3, "soon"], 1.0, ["a", "b"])


def test_vidur_and_blis_tables_are_found(tmp_path: Path) -> None:
    vidur = detect.read(
        text(tmp_path, "arrived_at,num_prefill_tokens,num_decode_tokens\n1.5,90,7\n3.0,20,3\n", "v.csv")
    )
    assert (vidur.format, vidur.conversations[0].streams[0].t_s.tolist()) == ("vidur", [0.0, 1.5])
    head = "request_id,session_id,round_index,input_tokens,output_tokens,"
    head += "arrival_time_us,send_time_us,last_chunk_time_us,status\n"
    body = "0,s,1,200,9,3000000,3000000,3500000,ok\n1,s,0,90,7,1000000,0,0,ok\n2,,0,9,9,5000000,0,0,timeout\n"
    blis = detect.read(text(tmp_path, head + body, "b.csv"))
    assert (blis.format, kinds(blis)["failed request"]) == ("blis", 1)
    (stream,) = blis.conversations[0].streams
    assert (stream.prompt_tokens.tolist(), stream.t_s.tolist(), stream.service_s[1]) == ([90, 200], [0.0, 2.0], 0.5)


def test_an_aibrix_workload_is_found_and_is_no_weka_trace(tmp_path: Path) -> None:
    rows = [
        {"timestamp": 700, "requests": [{"Prompt Length": 90, "Output Length": 7}, {"prompt": "abcd" * 5}]},
        {"timestamp": 900, "requests": [{"prompt_length": 60, "output_length": 5}]},
    ]
    corpus = detect.read(jsonl(tmp_path, *rows))
    (stream,) = corpus.conversations[0].streams
    assert (corpus.format, stream.prompt_tokens.tolist()) == ("aibrix", [90, 5, 60])
    assert stream.t_s.tolist() == pytest.approx([0.7, 0.7, 0.9])
    assert stream.output_tokens.tolist() == [7, 128, 5]


def dynamo(name: str, at_ms: int, end_ms: int, session: str | None, hashes: list[int], **more: Any) -> dict[str, Any]:
    replay = {"trace_block_size": 64, "input_length": 64 * len(hashes), "input_sequence_hashes": hashes}
    request = {"request_id": name, "request_received_ms": at_ms, "output_tokens": 8, "replay": replay}
    context = {"agent_context": {"session_id": session} | more} if session else {}
    event = {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "event_time_unix_ms": end_ms}
    return event | {"request": request} | context


def test_dynamo_request_traces_become_sessions_with_sub_agents(tmp_path: Path) -> None:
    base = 1_790_000_000_000
    h = 2**63
    rows = [
        dynamo("c", base + 9_000, base + 9_500, "main", [h, h + 1, h + 7]),
        dynamo("b", base + 3_000, base + 6_000, "sub", [h + 90], parent_session_id="main"),
        {"schema": "dynamo.request.trace.v1", "event_type": "tool_end", "tool": {}},
        dynamo("a", base, base + 2_000, "main", [h, h + 1]),
    ]
    corpus = detect.read(jsonl(tmp_path, {"event": rows[0]}, *rows[1:]))
    (talk,) = corpus.conversations
    assert [(s.relation, s.t_s.tolist()) for s in talk.streams] == [("root", [0.0, 9.0]), ("spawn", [3.0])]
    assert talk.streams[0].waits == {1: ((1, 0),)}
    assert talk.streams[1].waits == {0: ((0, 0),)}
    assert derive.hit_token_ratio(corpus) == pytest.approx(2 / 6)


def test_dynamo_rows_without_sessions_stand_alone_and_mixed_ones_are_refused(tmp_path: Path) -> None:
    alone = [dynamo("a", 5_000, 6_000, None, [1, 2]), dynamo("b", 1_000, 2_000, None, [1, 3])]
    (stream,) = detect.read(jsonl(tmp_path, *alone)).conversations[0].streams
    assert (stream.relation, stream.t_s.tolist(), stream.service_s.tolist()) == ("independent", [0.0, 4.0], [1.0, 1.0])
    with pytest.raises(UserError, match="some rows state a session"):
        detect.read(jsonl(tmp_path, *alone, dynamo("c", 9_000, 9_100, "s", [4])))


def test_records_of_aiperf_are_found_with_failures_and_warm_up_told(tmp_path: Path) -> None:
    def record(start_s: float, session: str, turn: int, tokens: int, **more: Any) -> dict[str, Any]:
        start = int((1_790_000_000 + start_s) * 1e9)
        metadata = {"request_start_ns": start, "request_end_ns": start + 10**9, "x_correlation_id": session}
        metrics = {"input_sequence_length": {"value": tokens}, "output_sequence_length": {"value": 9}}
        return {"metadata": metadata | {"turn_index": turn}, "metrics": metrics, "error": None} | more

    warm = record(0, "w", 0, 50)
    warm["metadata"]["benchmark_phase"] = "warmup"
    rows = [warm, record(5, "a", 1, 300), record(2, "a", 0, 100), record(3, "b", 0, 70, error={"code": 499})]
    corpus = detect.read(jsonl(tmp_path, *rows))
    assert corpus.format == "aiperf-export"
    assert (kinds(corpus)["failed request"], kinds(corpus)["warm-up request"]) == (1, 1)
    (talk,) = corpus.conversations
    assert talk.streams[0].prompt_tokens.tolist() == [100, 300]
    assert talk.streams[0].t_s.tolist() == pytest.approx([0.0, 3.0])


def test_detailed_results_of_a_serving_benchmark(tmp_path: Path) -> None:
    result = {
        "input_lens": [90, 60, 40],
        "output_lens": [3, 2, 0],
        "ttfts": [0.5, 0.25, 0],
        "itls": [[0.1, 0.1], [0.05], []],
    }
    path = text(
        tmp_path, json.dumps(result | {"start_times": [50.0, 52.0, 53.0], "errors": ["", "", "gone"]}), "r.json"
    )
    corpus = detect.read(path)
    (stream,) = corpus.conversations[0].streams
    assert (corpus.format, stream.t_s.tolist(), kinds(corpus)["failed request"]) == ("vllm-bench", [0.0, 2.0], 1)
    assert stream.service_s.tolist() == pytest.approx([0.7, 0.3])
    clockless = detect.read(text(tmp_path, json.dumps(result), "n.json"))
    assert clockless.conversations[0].start_s is None
    with pytest.raises(UserError, match="equal were expected"):
        detect.read(text(tmp_path, json.dumps(result | {"ttfts": [1.0]}), "u.json"))


def test_sharegpt_conversations_accumulate_their_history(tmp_path: Path) -> None:
    turns = [("human", 400), ("gpt", 80), ("human", 40), ("gpt", 120)]
    messages = [{"from": who, "value": "w" * characters} for who, characters in turns]
    corpus = detect.read(text(tmp_path, json.dumps([{"id": "q", "conversations": messages}]), "s.json"))
    (talk,) = corpus.conversations
    assert (corpus.format, talk.start_s) == ("sharegpt", None)
    assert talk.streams[0].prompt_tokens.tolist() == [100, 130]
    assert derive.cached_tokens(talk)[0].tolist() == [0, 100]


def test_an_unknown_table_is_pointed_to_columns(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--columns reads any table"):
        detect.read(text(tmp_path, "when,prompt,answer\n1,2,3\n"))
    assert table(text(tmp_path, "when,prompt,answer\n1,2,3\n"), "arrived=when,input=prompt,output=answer").requests == 1


def test_rows_out_of_order_are_sorted_by_the_replay_and_counted(tmp_path: Path) -> None:
    corpus = table(text(tmp_path, "w,p,a\n9,2,3\n1,2,3\n"), "arrived=w,input=p,output=a")
    assert kinds(corpus)["time going backwards"] == 1
    assert np.sort(corpus.conversations[0].streams[0].t_s).tolist() == [0.0, 8.0]
