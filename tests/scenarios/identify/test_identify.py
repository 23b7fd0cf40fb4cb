"""Identified plants: against declared parameters, and to predict the cycle of a plant that declares none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from orchestrator.ports import Every
from policies.admission.prbs import Prbs
from policies.admission.relay import Relay
from policies.blocks import maximal_sequence
from policies.design.structure import RelayOnBusy
from policies.design.tandem_model import TandemModel
from scenarios.analyze import analyze
from scenarios.cli import app
from scenarios.errors import UserError
from scenarios.identify import identify
from scenarios.identify.cache import cached
from scenarios.run.execute import run
from scenarios.schema.load import load

FLUID = """
title = "A fluid"
question = "Is it identified?"
seed = 1
horizon_s = 400.0
warmup_s = 50.0
workload = { kind = "saturated", waiting_turns = 100 }
plant = { kind = "fluid", slots = 400, dead_time_s = 6.0, residence = { mean_s = 4.0 }, step_s = 0.02 }
admission = { max_release_per_s = 200.0 }
control = { admission_period_s = 0.02 }
record = { signal_bin_s = 0.1 }
[[candidates]]
name = "gate"
admission = { kind = "retirement_gate", open_at_ratio = 0.9, close_at_ratio = 1.0 }
"""

CLUSTER = """
title = "A cluster behind a retirement gate"
question = "Does the identified plant predict the cycle?"
seed = 5
horizon_s = 200.0
warmup_s = 40.0

[workload]
kind = "saturated"
waiting_turns = 256
prompt = { shape = "fixed", mean_tokens = 1000 }
output = { shape = "exponential", mean_tokens = 150 }

[plant]
kind = "cluster"

[plant.configurations.fill]
role = "fill"
slots = 1
chunk_tokens = 1000
kv_capacity_tokens = 100000000
times = { kind = "linear", base_s = 0.0, per_sequence_s = 0.0, per_kv_token_s = 0.0, per_new_token_s = 4e-3 }

[plant.configurations.decode]
role = "decode"
slots = 64
kv_capacity_tokens = 100000000
times = { kind = "linear", base_s = 8e-3, per_sequence_s = 100e-6, per_kv_token_s = 20e-9, per_new_token_s = 0.0 }

[[plant.racks]]
workers = 482
uplink_bytes_per_s = 1e15

[[plant.pools]]
configuration = "fill"
workers = 480

[[plant.pools]]
configuration = "decode"
workers = 2

[admission]
max_release_per_s = 110.0

[control]
admission_period_s = 0.05

[[candidates]]
name = "retirement_gate"
admission = { kind = "retirement_gate", open_at_ratio = 0.9, close_at_ratio = 1.0 }
"""


@pytest.fixture
def fluid(tmp_path: Path) -> Path:
    path = tmp_path / "fluid.toml"
    path.write_text(FLUID)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("excitation", ["prbs", "step"])
def test_a_fluid_plant_is_identified_as_declared(fluid: Path, excitation: str) -> None:
    identified = identify(load(str(fluid)), excitation=excitation)  # type: ignore[arg-type]
    assert identified.gain_s == pytest.approx(4.0, rel=0.01)
    assert identified.tau_s == pytest.approx(4.0, rel=0.03)
    assert identified.dead_time_s == pytest.approx(6.0, abs=0.1)
    assert identified.explained_ratio > 0.99


@pytest.mark.slow
def test_a_relay_experiment_shows_the_ultimate_point(fluid: Path) -> None:
    identified = identify(load(str(fluid)), excitation="relay")
    from policies.design.loops import hopf_point

    point = hopf_point(4.0, 6.0)
    assert identified.ultimate_period_s == pytest.approx(point.period_s, rel=0.08)
    assert identified.ultimate_gain_per_s == pytest.approx(point.gain_per_s, rel=0.15)


@pytest.mark.slow
def test_the_identified_cluster_predicts_its_gates_cycle_within_a_tenth(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER)
    scenario = load(str(path))
    identified = identify(scenario)
    assert identified.slots == 128
    assert identified.dead_time_s == pytest.approx(4.0, abs=0.5)
    # The decode worker's own table: a turn takes 150 steps of 8 ms in an empty batch, of 14.4 ms in a full one.
    empty_s, full_s = identified.residences_s()[0]
    assert empty_s == pytest.approx(1.2, rel=0.1)
    assert full_s == pytest.approx(2.16, rel=0.1)
    (expected,) = analyze(
        scenario,
        identified=identified.model(),
        open_per_s=identified.open_per_s,
        residences_s=identified.residences_s(),
    )
    done = run(scenario)
    measured = done.data.verdicts["decode_occupancy_ratio"]
    assert measured.verdict == expected.prediction.verdict == "limit_cycle"
    assert measured.period_s == pytest.approx(expected.prediction.period_s, rel=0.1)
    used = expected.prediction.utilization_ratio
    assert done.summary["flow"]["decode_utilization_ratio"] == pytest.approx(used, abs=0.02)


def test_a_plant_without_a_model_asks_for_an_experiment(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER)
    with pytest.raises(UserError, match="identify it first"):
        analyze(load(str(path)))


@pytest.mark.slow
def test_an_identified_plant_is_cached_by_its_digest(fluid: Path, tmp_path: Path) -> None:
    scenario = load(str(fluid), ["horizon_s=200"])
    first, kept = cached(scenario, "step", tmp_path, lambda: identify(scenario, excitation="step"))
    again, from_disk = cached(scenario, "step", tmp_path, lambda: pytest.fail("made twice"))
    assert (kept, from_disk, again) == (False, True, first)
    other = load(str(fluid), ["horizon_s=200", "plant.dead_time_s=7"])
    assert not cached(other, "step", tmp_path, lambda: first)[1]


def test_a_record_that_determines_no_model_is_an_error_with_a_remedy(fluid: Path) -> None:
    with pytest.raises(UserError, match="lengthen horizon_s"):
        identify(load("mild", ["horizon_s=80", "warmup_s=60", "plant.slots=16"]), excitation="step", hold_s=0.05)
    with pytest.raises(UserError, match="never moves"):
        identify(load(str(fluid), ["horizon_s=80", "warmup_s=60"]), excitation="step", hold_s=1000.0)


def test_a_relay_on_readings_older_than_its_tick_is_refused_and_blind_excitations_are_not() -> None:
    aged = ["telemetry.age_s=1", "telemetry.period_s=0.1", 'control.allow_period_below_age=["admission"]']
    with pytest.raises(UserError, match="shorter than the age of the readings"):
        identify(load("mild", aged), excitation="relay")


def test_a_recorded_workload_is_refused_for_an_open_loop_experiment() -> None:
    scenario = load("mild")

    class Recorded:
        kind = "trace"

    with pytest.raises(UserError, match="brings its own arrivals"):
        identify(scenario.model_copy(update={"workload": Recorded()}))


@pytest.mark.slow
def test_the_command_prints_its_result(fluid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = CliRunner().invoke(
        app, ["identify", str(fluid), "--excitation", "step", "--json", "--set", "horizon_s=200"]
    )
    answer = json.loads(first.output)
    assert (answer["slots"], answer["kept"]) == (400, False)
    second = CliRunner().invoke(app, ["identify", str(fluid), "--excitation", "step", "--set", "horizon_s=200"])
    assert "kept from before" in second.output
    wrong = CliRunner().invoke(app, ["identify", str(fluid), "--excitation", "stepp"])
    assert isinstance(wrong.exception, UserError)


def test_the_register_runs_through_every_state_and_is_nearly_balanced() -> None:
    bits = np.array(maximal_sequence())
    assert (len(bits), bits.sum()) == (127, 64)
    signs = 2.0 * bits - 1
    correlation = [float(np.dot(signs, np.roll(signs, k))) for k in range(1, 127)]
    assert set(correlation) == {-1.0}
    assert Prbs(Every(period_s=1.0), low_per_s=0.0, high_per_s=1.0, hold_s=1.0) is not None


def test_the_relay_excitation_is_a_gate_only_where_its_low_rate_is_none() -> None:
    model = TandemModel(slots=100, residence_s=1.0, dead_time_s=1.0)
    levels = {"high_per_s": 9.0, "threshold_turns": 50.0, "band_turns": 4.0}
    assert Relay(Every(period_s=1.0), low_per_s=1.0, **levels).structure(model) is None
    shut = Relay(Every(period_s=1.0), low_per_s=0.0, **levels).structure(model)
    assert shut == RelayOnBusy(open_at_turns=48.0, close_at_turns=52.0)


FIXED_ANSWERS = 'workload.output={ shape = "fixed", mean_tokens = 200 }'


@pytest.mark.slow
def test_a_cluster_with_fixed_answers_is_identified_with_their_shape_and_its_gate_agrees(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(CLUSTER)
    scenario = load(str(path), [FIXED_ANSWERS, "horizon_s=400"])
    identified = identify(scenario)
    shape = identified.model().shape
    assert shape.cv < 0.15
    assert identified.dead_time_s == pytest.approx(4.0, abs=0.3)
    (analysis,) = analyze(
        scenario,
        identified=identified.model(),
        open_per_s=identified.open_per_s,
        residences_s=identified.residences_s(),
        verify=True,
    )
    assert analysis.differences == ()
    assert analysis.to_json()["model"]["residence_shape"].startswith("measured")  # type: ignore[index]


@pytest.mark.slow
def test_a_tandem_of_fixed_residence_is_identified_with_it() -> None:
    sets = ['plant.residence.shape="fixed"', "plant.slots=200", "plant.dead_time_s=6", "horizon_s=600"]
    identified = identify(load("mild", sets))
    mean_s = load("mild").plant.residence.mean_s  # type: ignore[union-attr]
    assert identified.model().shape.cv < 0.01
    assert identified.gain_s == pytest.approx(mean_s, rel=0.02)
    assert identified.dead_time_s == pytest.approx(6.0, abs=0.3)
