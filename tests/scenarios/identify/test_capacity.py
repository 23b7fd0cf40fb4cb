"""Identification of a pool's start-up: against the declared time, and where the plant declares none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from typer.testing import CliRunner

from orchestrator.messages import CapacityReading
from orchestrator.ports import Every
from policies.capacity.relay import Relay
from policies.design.fits import drifts
from policies.design.two_way import fit_two_way, split
from scenarios.analyze import analyze
from scenarios.analyze.scaling import Startup, undeclared
from scenarios.cli import app
from scenarios.conformance.readings import steady
from scenarios.errors import UserError
from scenarios.identify import IdentifiedStartup, identify_startup
from scenarios.identify.cache import cached_startup
from scenarios.identify.startup import admission_candidate, pool_of
from scenarios.schema.load import load

# A pool that hardly works, so that an experiment costs little.
QUIET = ["workload.steps=[{ at_s = 0.0, rate_per_s = 0.5 }]", "horizon_s=900"]
POOLS = '[{ configuration = "serve", workers = 16 }, { configuration = "spare", workers = 40 }]'
DRAWN = [
    f"plant.pools={POOLS}",
    "horizon_s=1500",
    "plant.configurations.serve.load_cv_ratio=0.4",
    "plant.configurations.serve.load_s=30",
]


@pytest.mark.slow
@pytest.mark.parametrize("excitation", ["step", "prbs", "relay"])
def test_the_start_that_a_plant_states_is_identified_by_every_excitation(excitation: str) -> None:
    identified = identify_startup(load("pending_blind", QUIET), "serve", excitation=excitation)  # type: ignore[arg-type]
    assert identified.declared_s == 35.0
    assert identified.delay_s == pytest.approx(35.0, abs=1.0)
    assert identified.gain_ratio == pytest.approx(1.0, abs=0.05)
    # Winding down waits for the turns that are there: seconds, and never as long as a start.
    assert 0.0 <= identified.down_dead_time_s + identified.down_tau_s < 25.0
    assert identified.dead_time_ci_s >= 0.375
    if excitation == "relay":
        assert identified.ultimate_period_s is not None
        assert 60.0 <= identified.ultimate_period_s <= 90.0


@pytest.mark.slow
def test_a_drawn_start_is_declared_by_nobody_and_analysed_as_identified() -> None:
    scenario = load("pending_blind", [*QUIET, *DRAWN])
    assert undeclared(scenario) == ["serve"]
    with pytest.raises(UserError, match="identify it first"):
        analyze(scenario)
    identified = identify_startup(scenario, "serve", excitation="prbs")
    assert identified.declared_s is None
    assert identified.delay_s == pytest.approx(30.0, rel=0.15)
    startup = Startup(delay_s=identified.delay_s, source="identified by open-loop prbs experiment")
    blind = analyze(scenario, startups={"serve": startup})[0]
    assert blind.source == "identified by open-loop prbs experiment"
    assert blind.prediction.facts["unseen_ticks"] == np.ceil(identified.delay_s / 15.0) - 1


def test_a_rise_and_a_fall_of_their_own_delays_and_lags_are_separated() -> None:
    t = np.arange(0, 600, 0.5)
    wanted = np.where((t // 60) % 2 == 0, 2.0, 5.0)
    up, down = split(wanted, 2.0)
    assert np.all(up + down == wanted - 2.0)
    late = np.interp(t - 21.0, t, up, left=0.0) + np.interp(t - 8.0, t, down, left=0.0)
    identified = fit_two_way(t, wanted, 2.0 + late, rest=2.0, most_dead_time_s=50.0)
    assert identified.up.dead_time_s + identified.up.tau_s == pytest.approx(21.0, abs=0.75)
    assert identified.down.dead_time_s + identified.down.tau_s == pytest.approx(8.0, abs=0.75)
    assert identified.explained > 0.99
    assert 0.5 <= identified.up_delay_ci_s <= identified.up_dead_time_ci_s + identified.up_tau_ci_s
    with pytest.raises(ValueError, match="less than twice"):
        fit_two_way(t, np.full(len(t), 2.0), late, rest=2.0, most_dead_time_s=50.0)


def test_a_lasting_change_of_the_plant_shows_in_the_residual() -> None:
    rng = np.random.default_rng(3)
    noise = rng.standard_normal(3000)
    assert not drifts(noise, 10 * noise)
    assert drifts(noise + 12.0 * (np.arange(3000) > 1800), 10 * noise)


def test_an_impossible_identification_is_an_error_with_a_remedy() -> None:
    scenario = load("pending_blind", QUIET)
    with pytest.raises(UserError, match="needs a cluster"):
        pool_of(load("mild"))
    with pytest.raises(UserError, match="did you mean `serve`"):
        pool_of(scenario, "serv")
    with pytest.raises(UserError, match="without idle workers"):
        pool_of(scenario.model_copy(update={"reconfigure": scenario.reconfigure.model_copy(update={"reserve": None})}))
    with pytest.raises(UserError, match="moves up and down less than twice: lengthen horizon_s"):
        identify_startup(load("pending_blind", [*QUIET, "horizon_s=60", "warmup_s=10"]), "serve")
    with pytest.raises(UserError, match=r"the record is too short: .* set horizon_s to"):
        identify_startup(load("pending_blind", [*QUIET, "horizon_s=240"]), "serve")
    aged = ["telemetry.age_s=20", "telemetry.period_s=1", 'control.allow_period_below_age=["capacity"]']
    with pytest.raises(UserError, match="shorter than the age of the readings"):
        identify_startup(load("pending_blind", [*QUIET, *aged]), "serve")


def test_the_command_stores_its_result_and_prints_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = IdentifiedStartup(
        configuration="serve",
        low_workers=2,
        high_workers=3,
        gain_ratio=1.0,
        gain_ci_ratio=0.01,
        dead_time_s=34.5,
        dead_time_ci_s=0.4,
        tau_s=0.5,
        tau_ci_s=0.4,
        down_dead_time_s=6.35e-13,
        down_dead_time_ci_s=0.4,
        down_tau_s=2.0,
        down_tau_ci_s=0.4,
        delay_ci_s=0.2,
        down_delay_ci_s=0.4,
        explained_ratio=0.99,
        white=False,
        excitation="step",
        source="open-loop step experiment",
        declared_s=35.0,
    )
    monkeypatch.chdir(tmp_path)
    scenario = load("pending_blind")
    assert cached_startup(scenario, "serve", "step", Path("runs/identified"), lambda: stored) == (stored, False)
    assert cached_startup(scenario, "serve", "prbs", Path("runs/identified"), lambda: stored) == (stored, False)
    result = CliRunner().invoke(app, ["identify", "pending_blind", "--loop", "capacity"])
    assert "kept from before" in result.output
    assert "35 +- 0.2 s in all: dead time 34.5 +- 0.4 s, lag 0.5 +- 0.4 s" in result.output
    assert "dead time 0 +- 0.4 s" in result.output
    assert "35 s according to the plant" in result.output
    answer = json.loads(CliRunner().invoke(app, ["identify", "pending_blind", "--loop", "capacity", "--json"]).output)
    assert (answer["kept"], answer["dead_time_s"]) == (True, 34.5)


@pytest.mark.slow
def test_the_experiment_keeps_the_admission_law_of_the_candidate_that_scales_the_pool() -> None:
    scenario = load("one_tick_blind", ["horizon_s=900", "warmup_s=100"])
    assert admission_candidate(scenario, "serve").admission.kind == "credit"
    identified = identify_startup(scenario, "serve")
    assert abs(identified.delay_s - 22.5) <= identified.delay_ci_s


def test_the_relay_switches_on_the_ready_workers() -> None:
    law = Relay(
        Every(period_s=15.0), configuration="decode", low_workers=4, high_workers=8, threshold_workers=6, band_workers=2
    )
    y = cast(CapacityReading, steady("capacity", 1, 15.0, 0.5))
    commanded = []
    for ready in (8, 6, 5, 6, 7):
        pools = {name: pool._replace(active_workers=ready) for name, pool in y.pools.items()}
        command = law.act(replace(y, pools=pools))
        assert command.target_workers is not None
        commanded += command.target_workers.values()
    assert commanded == [4, 4, 8, 8, 4]
