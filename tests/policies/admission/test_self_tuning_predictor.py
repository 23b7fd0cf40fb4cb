"""The self-tuning predictor finds dead time and service, keeps its bounds, paces while blind, and holds a box."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.messages import AdmissionReading
from orchestrator.ports import Every
from policies.admission.self_tuning_predictor import SelfTuningPredictor
from scenarios.robust.draws import drawn, draws, ranges_of
from scenarios.run.execute import run
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario
from tests.policies.admission.test_laws import seen

EVERY = Every(period_s=0.1)
STATED_L_S, STATED_PER_S, SLOTS = 10.0, 20.0, 100.0


def law() -> SelfTuningPredictor:
    return SelfTuningPredictor(EVERY, dead_time_s=STATED_L_S, full_per_s=STATED_PER_S)


def plant(t: float, dead_s: float, residence_s: float, busy: float, waves: float) -> AdmissionReading:
    """Return the reading at t of a pool that serves evenly behind a dead time, the release rate swinging by `waves`."""

    def released(at_s: float) -> float:
        at = max(at_s, 0.0)
        return 20.0 * at + waves * 20.0 * (1.0 - math.cos(at))

    filling = released(t) - released(t - dead_s)
    return seen(
        now_s=t,
        released_total=released(t),
        filling_turns=filling,
        busy_slots=busy,
        in_flight_turns=filling + busy,
        retired_total=t * busy / residence_s,
    )


@given(st.floats(3.0, 30.0), st.floats(2.0, 15.0), st.floats(5.0, 100.0), st.floats(0.0, 0.9))
def test_it_finds_dead_time_and_service_whatever_the_pools_load_and_its_own_swing(
    dead_s: float, residence_s: float, busy: float, waves: float
) -> None:
    # Between readings h apart the release counter is taken as straight: at most h^2/8 of the rate's slope off, 20 waves
    # turns/s^2 here, so that the mean age lies at most 0.9 h^2/8 s off: 0.03 s, 1 % of the shortest dead time.
    predictor = law()
    for k in range(1200):
        predictor.act(plant(0.5 * k, dead_s, residence_s, busy, waves))
    assert pytest.approx(dead_s, rel=0.02) == predictor.L
    assert predictor.r == pytest.approx(SLOTS / residence_s, rel=0.02)


def test_a_pipeline_that_lets_nothing_out_is_at_least_as_long_as_it_has_been_watched() -> None:
    predictor = law()
    for k in range(300):
        predictor.act(plant(0.1 * k, 40.0, 5.0, 0.0, 0.0))
    assert pytest.approx(29.9, abs=0.2) == predictor.L


readings = st.builds(
    lambda step, released, filling, retired, busy: (step, released, filling, retired, busy),
    st.floats(-5.0, 50.0),
    *(st.floats(0.0, 1e6) for _ in range(4)),
)


@given(st.lists(readings, max_size=30))
def test_no_sequence_of_readings_takes_an_estimate_out_of_its_bounds(shown: list[tuple[float, ...]]) -> None:
    predictor, t = law(), 0.0
    for step, released, filling, retired, busy in shown:
        t += step
        command = predictor.act(
            seen(now_s=t, released_total=released, filling_turns=filling, retired_total=retired, busy_slots=busy)
        )
        assert STATED_L_S / 4 <= predictor.L <= STATED_L_S * 4
        assert STATED_PER_S / 4 <= predictor.r <= STATED_PER_S * 4
        assert command.release_per_s is not None
        assert math.isfinite(command.release_per_s)


def test_blind_it_keeps_its_estimates_and_ends_up_pacing_at_the_last_service_rate() -> None:
    predictor = law()
    for k in range(1000):
        last = plant(0.5 * k, 12.0, 4.0, SLOTS, 0.0)
        predictor.act(last)
    dead_s, per_s = predictor.L, predictor.r
    rates = []
    for age_s in (0.0, 10.0, 100.0, 10_000.0):
        frozen = seen(
            **{name: getattr(last, name) for name in ("released_total", "filling_turns", "retired_total")},
            now_s=last.at_s + age_s,
            at_s=last.at_s,
            in_flight_turns=5000.0,
            busy_slots=SLOTS,
        )
        rates.append(predictor.act(frozen).release_per_s or 0.0)
    assert (predictor.L, predictor.r) == (dead_s, per_s)
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(per_s, rel=0.02)


BOX = """
title = "A box"
question = "Does it hold?"
seed = 4
horizon_s = 240.0
warmup_s = 140.0
workload = { kind = "saturated", waiting_turns = 256 }
plant = { kind = "tandem", slots = 128, dead_time_s = 10.0, residence = { mean_s = 5.0 } }
admission = { max_release_per_s = 51.2 } # what a full pool serves at T x 0.5: no rate in hand there
control = { admission_period_s = 0.1 }
uncertainty = { dead_time_ratio = [0.5, 2.0], residence_ratio = [0.5, 2.0], residence_cv_ratio = [0.0, 3.0] }
[[candidates]]
name = "self"
admission = { kind = "self_tuning_predictor", dead_time_s = 10.0, full_per_s = 25.6 }
"""


@pytest.fixture
def box(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    path = tmp_path_factory.mktemp("box") / "box.toml"
    path.write_text(BOX)
    return load(path)


@pytest.mark.slow
@pytest.mark.parametrize("cv", [0.0, 1.0, 3.0])
def test_it_keeps_the_pool_busy_at_every_corner_of_dead_time_and_residence(box: Scenario, cv: float) -> None:
    used = {}
    for dead, residence in product((0.5, 2.0), repeat=2):
        corner = {"dead_time_ratio": dead, "residence_ratio": residence, "residence_cv_ratio": cv}
        flow = run(drawn(box, corner)).summary["flow"]
        used[dead, residence] = flow["decode_utilization_ratio"]
    assert min(used.values()) >= 0.97, used


@pytest.mark.slow
def test_it_keeps_the_pool_busy_at_draws_inside_the_box(box: Scenario) -> None:
    points = draws(ranges_of(box), 6, seed=7)
    used = [
        run(drawn(box, point), seed=i).summary["flow"]["decode_utilization_ratio"] for i, point in enumerate(points)
    ]
    assert min(used) >= 0.97, list(zip(points, used))
