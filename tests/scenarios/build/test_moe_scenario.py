"""A cluster whose workers are a real model on real hardware: the scenario's times are the layer model's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scenarios.build.moe import build_moe_times
from scenarios.run import execute
from scenarios.schema.load import load
from scenarios.schema.moe import MoeTimes
from scenarios.schema.plants import ClusterPlant

SCENARIO = """
title = "K3 on racks"
question = "Do separate prefill and decode placements of a real model serve at the layer model's pace?"
seed = 5
horizon_s = 240.0
warmup_s = 40.0
[workload]
kind = "poisson"
rate_per_s = 1.0
prompt = { shape = "fixed", mean_tokens = 8192 }
output = { shape = "uniform", mean_tokens = 100, high_tokens = 500 }
[plant]
kind = "cluster"
racks = [{ count = 3, workers = 2, uplink_bytes_per_s = 400e9 }]
pools = [{ configuration = "prefill", workers = 4 }, { configuration = "decode", workers = 2 }]
[plant.configurations.prefill]
role = "prefill"
gpus = 16
kv_bytes_per_token = 27648
times = { kind = "moe", model = "kimi-k3", hardware = "gb200-nvl72", placement = { pp = 4, tp = 4 } }
[plant.configurations.decode]
role = "decode"
gpus = 32
slots = 256
kv_capacity_tokens = 20000000
kv_bytes_per_token = 27648
times = { kind = "moe", model = "kimi-k3", hardware = "gb200-nvl72", placement = { dp = 32 } }
[[candidates]]
name = "open"
admission = { kind = "hold" }
"""


@pytest.mark.slow
def test_a_cluster_of_k3_serves_at_the_pace_of_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYFLOW_CACHE_DIR", str(tmp_path))
    (tmp_path / "s.toml").write_text(SCENARIO, encoding="utf-8")
    scenario = load(tmp_path / "s.toml")
    plant = scenario.plant
    assert isinstance(plant, ClusterPlant)
    tables = {}
    for name, configuration in plant.configurations.items():
        assert isinstance(configuration.times, MoeTimes)
        tables[name] = build_moe_times(configuration.times)
    turns = execute.run(scenario, out=tmp_path / "run").turns
    done = turns[turns["outcome"] == "retired"]
    assert len(done) > 100
    fills = (done["filled_s"] - done["fill_started_s"]).to_numpy()
    assert fills == pytest.approx(np.full(len(fills), tables["prefill"].mixed_s(0, 0, 8192, 0)), rel=1e-6)
    pace = ((done["ended_s"] - done["joined_s"]) / (done["output_tokens"] - 1)).to_numpy()
    # No batch of this run exceeds one sequence per rank, so the pace is that of a rank with one, and hardly moves.
    lone = tables["decode"].step_s(1, 8192)
    assert pace.min() >= lone * (1 - 1e-6)
    assert np.median(pace) == pytest.approx(lone, rel=0.05)
