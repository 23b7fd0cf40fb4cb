"""The cliff on a recorded corpus: what an infinite store hits, and where a finite one stops."""

from __future__ import annotations

import gzip
import json
from collections import OrderedDict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.turn import KvChain, KvRun, WorkerId
from plant.kv.context import BUSY
from plant.kv.spec import KvSpec, TierSpec
from plant.kv.tiered import TieredStore
from scenarios.build.conversations import with_trace
from scenarios.run.execute import run
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario
from scenarios.workloads.readers.detect import read
from tests.paths import TRACES
from tests.plant.kv.world import HeapClock, turn

CORPUS = TRACES / "agentx_v8" / "traces.jsonl.gz"


def corpus() -> Path:
    if not CORPUS.exists():
        pytest.skip(f"the recorded traces are not here: {CORPUS}")
    return CORPUS


def raw_hits(requests: list[dict[str, Any]]) -> list[int]:
    """Cached tokens of each main request under an infinite cache, from the plain lists of ids."""
    seen: set[int] = set()
    hits = []
    for request in requests:
        ids = request["hash_ids"]
        leading = next((k for k, block in enumerate(ids) if block not in seen), len(ids))
        hits.append(min(leading * 64, request["in"]))
        seen.update(ids)
    return hits


@pytest.mark.slow
def test_an_infinite_store_hits_in_every_conversation_what_its_raw_block_ids_say() -> None:
    conversations = {c.name: c for c in read(corpus(), on_error="repair").conversations}
    checked = 0
    with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
        for line in lines:
            raw = json.loads(line)
            main = [r for r in raw["requests"] if r["type"] in ("n", "s")]
            stream = conversations[raw["id"]].streams[0]
            spec = KvSpec(bytes_per_token=1.0, network=TierSpec(capacity_bytes=float("inf")))
            store = TieredStore(HeapClock(), spec)  # type: ignore[arg-type]
            hits = []
            for k, runs in enumerate(stream.all_runs()):
                chain = KvChain(tuple(KvRun(1, first, blocks) for first, blocks in runs), 64)
                view = turn(1, chain, int(stream.prompt_tokens[k]))
                hits.append(min(store.match(chain), view.prompt_tokens))
                store.put(view, view.prompt_tokens, WorkerId(0), BUSY)
            assert hits == raw_hits(main)
            checked += len(hits)
    assert checked > 10_000


@lru_cache(maxsize=1)
def scenario() -> Scenario:
    return with_trace(load("kv_cliff"), corpus())


def hit(lanes: int, capacity_tokens: int, horizon_s: float, seed: int = 20260930) -> float:
    stated = scenario()
    law = stated.candidates[0].retention.model_copy(update={"capacity_tokens": capacity_tokens})
    changed = stated.model_copy(
        update={
            "horizon_s": horizon_s,
            "workload": stated.workload.model_copy(update={"lanes": lanes}),
            "candidates": (stated.candidates[0].model_copy(update={"retention": law}),),
        }
    )
    return float(run(changed, seed=seed).summary["kv"]["hit_token_ratio"])


@pytest.mark.slow
def test_the_hit_grows_with_capacity_and_never_passes_that_of_an_infinite_store() -> None:
    capacities = (1_000_000, 3_500_000, 8_000_000)
    hits = [hit(64, capacity, 5400.0) for capacity in capacities]
    infinite = hit(64, 10**9, 5400.0)
    assert hits == sorted(hits)
    assert hits[-1] <= infinite
    assert hits[0] < 0.3 < 0.9 < hits[-1]


@pytest.mark.slow
def test_the_capacity_of_the_cliff_scales_with_lanes() -> None:
    per_lane = []
    for lanes in (32, 128):
        tokens = np.array([30_000, 50_000]) * lanes
        seeds = range(1, 1 + 128 // lanes)  # as many conversations for few lanes as for many: their lengths are wild
        hits = [np.mean([hit(lanes, int(capacity), 5400.0, seed) for seed in seeds]) for capacity in tokens]
        per_lane.append(float(np.interp(0.5, hits, tokens)) / lanes)
        assert hits[0] < 0.5 < hits[1]
    assert max(per_lane) <= 1.25 * min(per_lane)


def test_the_store_agrees_with_a_plain_ordered_dictionary_of_sessions() -> None:
    """One object a session under LRU, written twice: here with sizes in a dictionary, there with tiers and blobs."""
    rng = np.random.default_rng(7)
    capacity = 400
    spec = KvSpec(bytes_per_token=1.0, network=TierSpec(capacity_bytes=capacity * 64))
    store = TieredStore(HeapClock(), spec)  # type: ignore[arg-type]
    plain: OrderedDict[int, int] = OrderedDict()
    sizes = [int(rng.integers(5, 40)) for _ in range(30)]
    for _ in range(3000):
        session = int(rng.integers(0, 30))
        sizes[session] = min(sizes[session] + int(rng.integers(0, 4)), 150)
        chain = KvChain((KvRun(session, 0, sizes[session]),), 64)
        assert store.match(chain) == plain.get(session, 0) * 64
        plain.pop(session, None)
        plain[session] = sizes[session]
        while sum(plain.values()) > capacity:
            plain.popitem(last=False)
        store.put(turn(session, chain, sizes[session] * 64 + 1), sizes[session] * 64, WorkerId(0), BUSY)
