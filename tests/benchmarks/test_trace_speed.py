"""Speed of reading traces, in units of the standard library's JSON reader; of turns, in plain heap events."""

from __future__ import annotations

import heapq
import itertools
import json
import time
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from scenarios.trace.convert import convert
from scenarios.workloads.generate.presets import generate
from scenarios.workloads.lanes import LanesSource
from scenarios.workloads.readers import weka
from scenarios.workloads.script import scripts
from tests.scenarios.workloads.kit import Bench


@pytest.mark.slow
def test_a_trace_is_read_in_twice_the_time_of_its_json_alone(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    corpus = generate("agentx", sessions=40, seed=1)
    convert(corpus, path, "weka")
    start = time.process_time()
    read = benchmark.pedantic(weka.read, args=(path,), rounds=1)
    spent = time.process_time() - start
    assert read.requests == corpus.requests
    lines = path.read_text(encoding="utf-8").splitlines()
    start = time.process_time()
    for line in lines:
        json.loads(line)
    assert spent / (time.process_time() - start) < 2.0


@pytest.mark.slow
def test_a_turn_of_a_lane_costs_few_heap_events(benchmark: BenchmarkFixture) -> None:
    plays = scripts(generate("agentx", sessions=60, seed=1), share_prefix=True)

    def run() -> int:
        bench = Bench(service_s=5.0)
        return len(bench.play(LanesSource(bench.stage, plays, lanes=128, seed=1), until_s=3_000.0))

    start = time.process_time()
    turns = benchmark.pedantic(run, rounds=1)
    each = (time.process_time() - start) / turns
    count, heap = itertools.count(), [(float(k), k) for k in range(256)]
    heapq.heapify(heap)
    start = time.process_time()
    for k in range(200_000):
        heapq.heapreplace(heap, (heap[0][0] + 256.0 + (k & 7), next(count)))
    event = (time.process_time() - start) / 200_000
    assert turns > 5_000
    assert each / event < 120.0
