"""However a turn ends, the plant keeps nothing of it: memory stays flat in a run that rejects, cancels and loses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.turn import TurnId
from orchestrator.virtual_clock import run_virtual
from plant.cluster import Cluster
from scenarios.build import assemble
from scenarios.run.sink import MemorySink
from scenarios.schema.load import load

SCENARIO = """
title = "Turns that end early"
question = "What is kept of them?"
seed = 1
horizon_s = 4000.0
warmup_s = 1.0

[workload]
WORKLOAD

[plant]
kind = "cluster"
kv = { bytes_per_token = 1e3 }
faults = [{ kind = "lost", at_s = 40.0, worker = 1, for_s = 30.0 }]
racks = [{ workers = 3, uplink_bytes_per_s = 1e9 }]
pools = [{ configuration = "fill", workers = 1 }, { configuration = "decode", workers = 2 }]

[plant.configurations.fill]
role = "fill"
kv_bytes_per_token = 1e3
times = { kind = "linear", base_s = 0.01, per_sequence_s = 0, per_kv_token_s = 0, per_new_token_s = 1e-5 }

[plant.configurations.decode]
role = "decode"
slots = 2
kv_bytes_per_token = 1e3
kv_capacity_tokens = 150000
times = { kind = "linear", base_s = 0.04, per_sequence_s = 0, per_kv_token_s = 0, per_new_token_s = 1e-5 }

[[candidates]]
name = "alone"
"""
POISSON = """
kind = "poisson"
rate_per_s = 1.0
turns = 200
prompt = { shape = "lognormal", mean_tokens = 60000, cv_ratio = 1.0 }
output = { shape = "exponential", mean_tokens = 60 }
"""
LANES = """
kind = "lanes"
lanes = 8
conversations = { kind = "generated", preset = "agentx", sessions = 8 }
"""


@pytest.mark.parametrize("workload", [POISSON, LANES], ids=["poisson", "lanes"])
def test_nothing_stays_behind_of_turns_that_are_cancelled_rejected_or_lost(workload: str, tmp_path: Path) -> None:
    path = tmp_path / "early.toml"
    path.write_text(SCENARIO.replace("WORKLOAD", workload))
    scenario = load(str(path), [])
    sink = MemorySink()
    kept: list[int] = []

    async def main(clock: Any) -> None:
        orchestrator, _ = assemble.orchestrator(scenario, scenario.candidates[0], 1, clock, sink)
        plant = orchestrator.plant
        assert isinstance(plant, Cluster)

        def cancel(_: None) -> None:
            for turn_id in [n for n in orchestrator._turns if n % 3 == 0]:
                orchestrator.cancel(TurnId(turn_id))
            clock.at(clock.now() + 5.0, cancel, None)

        clock.at(5.0, cancel, None)
        await orchestrator.run()
        live = set(orchestrator._turns)
        tables = (plant._hidden_turns, plant._events.progress, plant._events.idle_since_s or {})
        kept.extend(turn_id for table in tables for turn_id in table if turn_id not in live)
        assert plant._events.idle_since_s is not None

    run_virtual(main)
    outcomes = set(sink.data("", "", "").turns.outcome)
    assert {"retired", "failed:cancelled", "rejected:context_overflow"} <= outcomes
    assert kept == []


TANDEM = """
title = "Sessions on the reference plant"
question = "What is kept of their turns?"
seed = 1
horizon_s = 400.0
warmup_s = 1.0

[workload]
WORKLOAD

[plant]
kind = "tandem"
slots = 4
dead_time_s = 0.1
residence = { shape = "exponential", mean_s = 2.0 }

[[candidates]]
name = "alone"
"""


@pytest.mark.parametrize("workload", [POISSON, LANES], ids=["poisson", "lanes"])
def test_nothing_stays_behind_of_turns_that_the_reference_plant_retired(workload: str, tmp_path: Path) -> None:
    path = tmp_path / "tandem.toml"
    path.write_text(TANDEM.replace("WORKLOAD", workload))
    scenario = load(str(path), [])
    kept: list[int] = []
    retired: list[int] = []

    async def main(clock: Any) -> None:
        orchestrator, _ = assemble.orchestrator(scenario, scenario.candidates[0], 1, clock, MemorySink())
        await orchestrator.run()
        plant: Any = orchestrator.plant
        kept.extend(turn_id for turn_id in plant._hidden_turns if turn_id not in orchestrator._turns)
        retired.append(orchestrator.ledger.retired)

    run_virtual(main)
    assert retired[0] > 50
    assert kept == []
