"""Figures of `trace inspect` against independent counts; the rules of the labels; the HTML page."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from typer.testing import CliRunner

from scenarios.cli.trace import app
from scenarios.trace.bursts import dispersion, idle_start_warning, token_dispersion
from scenarios.trace.inspect import inspect
from scenarios.trace.labels import label, large_drops
from scenarios.workloads.corpus import StreamBuilder
from scenarios.workloads.generate.presets import PRESETS, generate
from scenarios.workloads.readers import detect
from tests.scenarios.workloads.kit import conversation, row, trace, written


def stream(*prompts: tuple[int, list[tuple[int, int]]]) -> Any:
    """A root of (prompt tokens, runs) in blocks of 64."""
    builder = StreamBuilder("", "root")
    for k, (prompt, runs) in enumerate(prompts):
        builder.add(t_s=float(k), prompt_tokens=prompt, output_tokens=5, runs=runs)
    return builder.build()


A, B = [(1, 1_000)], [(1, 100), (5_000, 900)]
K = 64_000


@pytest.mark.parametrize(
    ("name", "prompts"),
    [
        ("growth", [(K, A), (K + 640, [(1, 1_010)])]),
        ("growth", [(K, A), (58_000, [(1, 906)])]),
        ("rewrite", [(K, A), (K, B)]),
        ("rewind", [(K, A), (K, [(1, 700), (5_000, 300)])]),
        ("shrink", [(K, A), (44_800, [(1, 700)])]),
        ("compaction", [(K, A), (12_800, [(1, 100), (5_000, 100)])]),
        ("break", [(K, A), (2 * K, [(1, 100), (5_000, 1_900)])]),
        ("stalactite", [(K, A), (6_400, [(1, 100)]), (K + 640, [(1, 1_010)])]),
        ("growth", [(K, A), (K, [])]),
    ],
)
def test_each_break_has_its_name(name: str, prompts: list[Any]) -> None:
    names = label(stream(*prompts))
    assert names[:2] == ["first", name]


def test_after_a_stalactite_the_return_is_a_break_of_the_side_prompt_only() -> None:
    assert label(stream((K, A), (6_400, [(1, 100)]), (K, A))) == ["first", "stalactite", "growth"]


def test_large_drops_by_lengths_alone_need_size_peak_and_no_return() -> None:
    lengths = [100_000, 160_000, 20_000, 30_000, 90_000, 92_000, 95_000, 20_000]
    assert large_drops(stream(*((p, []) for p in lengths))).tolist() == [2]
    assert large_drops(stream(*((p, []) for p in (160_000, 20_000, 160_000)))).tolist() == []


def test_dispersion_is_one_for_poisson_and_tells_bunched_sizes_from_bunched_requests() -> None:
    rng = np.random.default_rng(4)
    t = np.cumsum(rng.exponential(0.25, 40_000))
    sizes = rng.integers(1, 1_000, len(t))
    for width in (1.0, 10.0):
        assert dispersion(t, width) == pytest.approx(1.0, abs=0.12)
        assert token_dispersion(t, sizes, width) == pytest.approx(1.0, abs=0.12)
    bunched = np.where((t % 600.0) < 60.0, 5_000, 10)
    assert (token_dispersion(t, bunched, 10.0) or 0.0) > 5.0


def test_a_slice_from_the_start_of_an_idle_trace_is_warned_of() -> None:
    busy = np.linspace(1_000.0, 10_000.0, 5_000)
    assert idle_start_warning(np.concatenate([[0.0], busy])) is not None
    assert idle_start_warning(busy) is None


def test_the_azure_code_trace_is_as_bursty_as_it_is_known_to_be() -> None:
    path = trace("azure2023", "AzureLLMInferenceTrace_code.csv")
    arrivals = inspect(detect.read(path))["arrivals"]
    assert arrivals["gap_cv"] == pytest.approx(13.2, abs=0.1)
    assert [round(v, 1) for v in arrivals["dispersion"].values()] == [13.2, 71.6, 164.0]
    with path.open(encoding="utf-8-sig", newline="") as file:
        stamps = [datetime.fromisoformat(r["TIMESTAMP"][:26]).timestamp() for r in csv.DictReader(file)]
    for width, value in arrivals["dispersion"].items():
        counts = Counter(int((t - stamps[0]) / float(width[:-1])) for t in stamps)
        bins = np.array([counts[b] for b in range(max(counts))])  # whole bins: the last stamp falls into a part of one
        assert bins.var() / bins.mean() == pytest.approx(value, rel=1e-6)


def test_the_mooncake_hit_is_the_known_one() -> None:
    figures = inspect(detect.read(trace("mooncake", "conversation_trace.jsonl.gz")))
    assert figures["hit"]["token_ratio"] == pytest.approx(0.374, abs=5e-4)
    assert figures["hit"]["block_ratio"] == pytest.approx(0.366, abs=5e-4)
    assert figures["arrivals"]["zero_gap_ratio"] == pytest.approx(0.90, abs=0.01)


@pytest.mark.slow
def test_recorded_agents_two_independent_ways_agree_exactly() -> None:
    path = trace("agentx_v8", "traces.jsonl.gz")
    figures = inspect(detect.read(path))
    prompts, outputs, news, services, gaps, tools, first, breaks = [], [], [], [], [], [], [], Counter[str]()
    with gzip.open(path) as lines:
        for line in lines:
            talk = orjson.loads(line)
            seen = set[int]()
            mains = [r for r in talk["requests"] if r["type"] != "subagent"]
            streams = [mains] + [r["requests"] for r in talk["requests"] if r["type"] == "subagent"]
            first.append(mains[0]["in"])
            for entry in talk["requests"]:
                for r in entry["requests"] if entry["type"] == "subagent" else [entry]:
                    ids = r["hash_ids"]
                    known = len(ids) if seen.issuperset(ids) else next(k for k, i in enumerate(ids) if i not in seen)
                    seen.update(ids[known:])
                    prompts.append(r["in"])
                    outputs.append(max(1, r["out"]))
                    news.append(r["in"] - known * 64)
                    services.extend([r["api_time"]] if "api_time" in r else [])
            for listed in streams:
                for before, after in pairwise(listed):
                    gaps.append(after["t"] - before["t"])
                    if before["stop"] == "tool_use" and "think_time" in after:
                        tools.append(after["think_time"])
                    a, b = before["hash_ids"], after["hash_ids"]
                    is_prefix = a == b[: len(a)]
                    kept = len(a) if is_prefix else next((k for k, (x, y) in enumerate(zip(a, b)) if x != y), len(b))
                    breaks["all"] += kept < 0.9 * len(a)
    q = figures["quantiles"]
    same = {
        "prompt_tokens": prompts,
        "output_tokens": outputs,
        "new_tokens": news,
        "service_s": services,
        "gap_start_to_start_s": gaps,
        "think_after_tool_s": tools,
        "first_prompt_tokens": first,
    }
    for name, values in same.items():
        assert q[name]["n"] == len(values), name
        assert q[name]["max"] == max(values)
        assert q[name]["mean"] == pytest.approx(np.mean(values), rel=1e-12)
        assert [q[name][f"p{p}"] for p in (5, 50, 99)] == pytest.approx(np.percentile(values, [5, 50, 99]), rel=1e-9)
    assert figures["hit"]["token_ratio"] == 1.0 - sum(news) / sum(prompts)
    assert sum(b["events"] for b in figures["new_tokens"]["breaks"].values()) == breaks["all"]
    assert figures["new_tokens"]["tokens"] == sum(news)


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_inspect_prints_figures_json_and_a_page_that_needs_no_network(tmp_path: Path) -> None:
    path = written(tmp_path, conversation([row(0, 640), row(3, 1_000), row(9, 700, first=900)]))
    page = tmp_path / "sub" / "page.html"
    result = run("inspect", path, "--html", page)
    assert result.exit_code == 0, result.output
    assert "1 conversations, 3 requests" in result.output
    figures = json.loads(run("inspect", path, "--json").output)
    assert figures["requests"] == 3
    assert figures["hit"]["token_ratio"] == pytest.approx(640 / 2_340)
    html = page.read_text(encoding="utf-8")
    assert 'id="context-turns"' in html
    assert "src=" not in html.split("</style>")[0]
    assert run("inspect", path, "--html", page, "--show", "c").exit_code == 0
    assert "did you mean `c`" in str(run("inspect", path, "--html", page, "--show", "c1").exception)


def test_rows_that_stand_alone_have_a_page_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,48,10\n", encoding="utf-8")
    assert run("inspect", path, "--html", tmp_path / "p.html").exit_code == 0
    assert "no prefix information" in run("inspect", path).output


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_prints_its_statistics_beside_the_target(preset: str, tmp_path: Path) -> None:
    result = run("generate", preset, tmp_path / "g.parquet", "--sessions", 30)
    assert result.exit_code == 0, result.output
    assert "published" in result.output
    assert detect.read(tmp_path / "g.parquet").digest() == generate(preset, sessions=30, seed=1).digest()


def test_a_window_too_short_for_a_width_leaves_its_dispersion_open(tmp_path: Path) -> None:
    profile = run("lanes", "--lanes", 1, "--seeds", 2, "--window-s", 60, "--idle-cap-s", 0, "--json")
    assert json.loads(profile.output)["dispersion"]["60s"] is None
    assert "– at 60s" in run("lanes", "--lanes", 1, "--seeds", 1, "--window-s", 60, "--idle-cap-s", 0).output


def test_a_preview_states_its_conventions_beside_the_load(tmp_path: Path) -> None:
    path = written(tmp_path, *(conversation([row(60 * k, 640 + 64 * k) for k in range(5)], f"c{n}") for n in range(4)))
    result = run("lanes", path, "--lanes", 3, "--seeds", 2, "--window-s", 600, "--idle-cap-s", 30)
    assert result.exit_code == 0, result.output
    assert "idle cap 30 s" in " ".join(result.output.split())
    figures = json.loads(run("lanes", path, "--lanes", 3, "--seeds", 2, "--window-s", 600, "--json").output)
    # A turn of 2 s every 3 s (its think time is 1 s), on each of three lanes; sub-second edges at the window's ends.
    assert figures["requests_per_s"] == pytest.approx(3 / 3.0, rel=0.25)
    assert figures["hit_token_ratio"]["2000000"] > 0.5
