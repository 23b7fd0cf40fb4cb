"""A key that the plant at hand would not look at is refused in one line; what is shared or at its default is not."""

from __future__ import annotations

import pytest

from scenarios.errors import UserError
from scenarios.schema.files import library
from scenarios.schema.load import load, to_toml, validate

FLUID = "plant.kind=fluid"
KALMAN = '{ kind = "kalman", lead_s = 10.0, level_ratio = 0.1, trend_ratio = 0.1 }'


@pytest.mark.parametrize(
    ("name", "sets", "message"),
    [
        ("mild", ['reconfigure.drain="retry"'], "reconfigure.drain would have no effect: the tandem plant has no work"),
        ("mild", ["candidates.0.reconfigure={dwell_s=1}"], "candidates.retirement_gate.reconfigure.dwell_s would"),
        ("mild", ["dispatch.snapshot_s=2"], "dispatch.snapshot_s would"),
        ("mild", ['candidates.0.routing={kind="round_robin"}'], "candidates.retirement_gate.routing would"),
        ("mild", [f"candidates.0.demand={KALMAN}"], "candidates.retirement_gate.demand would"),
        ("mild", ['candidates.0.pools=[{configuration="a",workers=1}]'], "candidates.retirement_gate.pools would"),
        ("mild", ["plant.residence.stages=4"], "plant.residence: stages would have no effect"),
        ("mild", ["plant.residence.cv_ratio=4"], "plant.residence: cv_ratio would have no effect"),
        ("mild", ["workload.prompt={mean_tokens=10, cv_ratio=2}"], "workload.prompt: cv_ratio would have no effect"),
        ("mild", ["workload.output={mean_tokens=10, high_tokens=20}"], "workload.output: high_tokens would"),
        ("mild", [FLUID, "telemetry.period_s=2"], "telemetry.period_s would have no effect: a flow is read as it is"),
        ("mild", [FLUID, "ready.capacity_turns=2"], "ready.capacity_turns would"),
        ("mild", [FLUID, "candidates.0.ready={capacity_turns=2}"], "candidates.retirement_gate.ready.capacity_turns"),
        ("mild", [FLUID, 'admission.order="edf"'], "admission.order would"),
        ("mild", [FLUID, "drain_s=2"], "drain_s would"),
        ("mild", [FLUID, 'record.events="all"'], "record.events would"),
        ("mild", [FLUID, 'candidates.0.batching={kind="aimd", most_turns=3}'], "retirement_gate.batching would"),
        ("pending_blind", ["ready.capacity_turns=2"], "ready.capacity_turns would have no effect: no configuration"),
        ("pending_blind", ["candidates.0.ready={capacity_turns=2}"], "candidates.pending_blind.ready.capacity_turns"),
        ("pending_blind", ['candidates.0.retention={kind="ttl", ttl_s=1}'], "pending_blind.retention would"),
        ("pending_blind", ["plant.configurations.serve.swap_bytes_per_s=1e9"], 'it needs preemption = "swap"'),
        (
            "service_drift",
            ["plant.faults.2.at_s=900"],
            "plant.faults.2.at_s = 900 would have no effect: the run ends at horizon_s = 900",
        ),
        (
            "service_drift",
            ["plant.faults.2.at_s=1e3", "drain_s=60"],
            "plant.faults.2.at_s = 1000 would have no effect: the run ends at horizon_s + drain_s = 960",
        ),
        ("pending_blind", ['reconfigure.reserve="spar"'], "no configuration spar (did you mean `spare`?)"),
        ("role_flips", ['candidates.0.reconfigure={reserve="fil"}'], "wait.reconfigure.reserve: no configuration fil"),
        ("kv_cliff", ["plant.kv.gpus_per_worker=4"], "plant.kv.gpus_per_worker would"),
        ("kv_cliff", ["plant.kv.nics=4"], "plant.kv.nics would"),
        ("kv_cliff", ["plant.kv.snapshot_tokens=4"], "plant.kv.snapshot_tokens would"),
    ],
)
def test_a_key_that_nothing_would_look_at_is_refused(name: str, sets: list[str], message: str) -> None:
    with pytest.raises(UserError) as refused:
        load(name, sets)
    line = str(refused.value)
    assert message in line
    assert line.startswith(f"{name}.toml: ")
    assert "\n" not in line


def test_what_is_shared_or_said_as_it_is_anyway_is_no_mistake() -> None:
    load("mild", ["control.capacity_period_s=10", "classes={default={ttft_s=1}}", 'reconfigure.drain="wait"'])


@pytest.mark.parametrize("name", sorted(library()))
def test_a_shipped_scenario_as_resolved_reads_again(name: str) -> None:
    import tomllib

    scenario = load(name)
    assert to_toml(validate(tomllib.loads(to_toml(scenario)), name)) == to_toml(scenario)


def test_a_fault_may_befall_the_turns_that_drain_after_the_horizon() -> None:
    load("service_drift", ["plant.faults.2.at_s=930", "drain_s=60"])
