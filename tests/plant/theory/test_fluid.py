"""The fluid plant: against the exact orbits of the relay, against itself at steady state, and against the turns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Every, On
from plant.theory.fluid import Fluid, FluidSpec
from plant.theory.tandem import Residence
from policies.admission.predictive_buffer import PredictiveBuffer
from policies.admission.predictive_buffer_naive import PredictiveBufferNaive
from policies.admission.proportional_gate import ProportionalGate
from policies.admission.retirement_gate import RetirementGate
from policies.design import orbits
from policies.hold import Hold


def fluid(law: Any, **changes: Any) -> Fluid:
    spec: dict[str, Any] = {
        "slots": 512,
        "dead_time_s": 10.0,
        "residence": Residence(mean_s=5.0),
        "max_release_per_s": 204.8,
        "arrivals_per_s": None,
        "waiting_turns": 512,
        "horizon_s": 100.0,
        "step_s": 0.005,
        "bin_s": 0.05,
    }
    return Fluid(FluidSpec(**spec | changes), law)


class Noted:
    """A gate whose openings are noted."""

    def __init__(self, law: RetirementGate) -> None:
        self.law, self.cadence = law, law.cadence
        self.openings: list[float] = []
        self._open: bool | None = True

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        command = self.law.act(y)
        if command.gate_open and not self._open:
            self.openings.append(y.now_s)
        self._open = command.gate_open
        return command


HELD = Hold(Every(period_s=1.0), AdmissionCommand())
ROWS = [
    # slots, residence_s, dead_time_s, alpha, band / slots, step_s
    (512, 5.0, 10.0, 2.0, 0.05, 0.01),
    (512, 10.0, 5.0, 2.0, 0.05, 0.01),
    (512, 10.0, 10.0, 1.5, 0.1, 0.02),
    (512, 20.0, 2.0, 2.0, 0.02, 0.005),
    (64, 5.0, 10.0, 2.0, 0.1, 0.01),
    (2048, 5.0, 10.0, 3.0, 0.05, 0.01),
    (512, 10.0, 1.0, 2.0, 0.05, 0.002),
]


@pytest.mark.slow
@pytest.mark.parametrize(("slots", "residence_s", "dead_time_s", "alpha", "band", "step_s"), ROWS)
def test_a_full_empty_cycle_has_the_period_trough_peak_and_utilisation_of_its_closed_form(
    slots: int, residence_s: float, dead_time_s: float, alpha: float, band: float, step_s: float
) -> None:
    rate_per_s = alpha * slots / residence_s
    orbit = orbits.full_empty_orbit(
        slots=slots, residence_s=residence_s, dead_time_s=dead_time_s, band_turns=band * slots, rate_per_s=rate_per_s
    )
    assert orbit is not None
    # A flow reaches N only in the limit, where it touches it: closing a hair below N is the same orbit.
    law = Noted(RetirementGate(Every(period_s=step_s), open_at_ratio=1.0 - band, close_at_ratio=1.0 - 1e-9))
    plant = fluid(
        law,
        slots=slots,
        residence=Residence(mean_s=residence_s),
        dead_time_s=dead_time_s,
        max_release_per_s=rate_per_s,
        horizon_s=6.2 * orbit.period_s + 5.0 * dead_time_s,
        step_s=step_s,
        bin_s=step_s,
    )
    columns = plant.run()
    t = np.asarray(columns["t_s"])
    start, end = law.openings[1], law.openings[-1]
    inside = (t >= start - 1e-9) & (t < end - 1e-9)
    busy, ready = (np.asarray(columns[name])[inside] for name in ("decoding_turns_mean", "ready_turns_max"))
    assert (end - start) / (len(law.openings) - 2) == pytest.approx(orbit.period_s, rel=0.005)
    assert busy.mean() / slots == pytest.approx(orbit.utilization_ratio, rel=0.005)
    assert busy.min() == pytest.approx(orbit.trough_turns, rel=0.01)
    assert ready.max() == pytest.approx(orbit.ready_peak_turns, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("dead_time_s", "period_s"), [(2.0, 10.779), (5.0, 19.595)])
def test_an_unsaturated_cycle_has_the_period_and_extremes_of_its_closed_form(
    dead_time_s: float, period_s: float
) -> None:
    orbit = orbits.unsaturated_orbit(
        residence_s=10.0, dead_time_s=dead_time_s, open_at_turns=450.0, close_at_turns=550.0, rate_per_s=100.0
    )
    assert orbit is not None
    law = Noted(RetirementGate(Every(period_s=0.005), open_at_ratio=0.45, close_at_ratio=0.55))
    plant = fluid(
        law,
        slots=1000,
        residence=Residence(mean_s=10.0),
        dead_time_s=dead_time_s,
        max_release_per_s=100.0,
        horizon_s=7.0 * orbit.period_s,
        bin_s=0.005,
    )
    columns = plant.run()
    t, busy = np.asarray(columns["t_s"]), np.asarray(columns["decoding_turns_mean"])
    start, end = law.openings[2], law.openings[-1]
    busy = busy[(t >= start) & (t < end)]
    assert orbit.period_s == pytest.approx(period_s, abs=0.001)
    assert (end - start) / (len(law.openings) - 3) == pytest.approx(orbit.period_s, rel=0.005)
    assert (busy.max(), busy.min()) == pytest.approx((orbit.peak_turns, orbit.trough_turns), rel=0.005)


def critical_gain(residence_s: float, dead_time_s: float) -> float:
    """Where s + 1/T + k e^(-sL) = 0 crosses the axis: w L + atan(w T) = pi, k = sqrt(w^2 + 1/T^2)."""
    low, high = 0.0, math.pi / dead_time_s
    for _ in range(80):
        w = 0.5 * (low + high)
        low, high = (w, high) if w * dead_time_s + math.atan(w * residence_s) < math.pi else (low, w)
    return math.hypot(low, 1.0 / residence_s)


@pytest.mark.slow
@pytest.mark.parametrize(("residence_s", "dead_time_s", "published"), [(10.0, 2.0, 0.8502), (10.0, 5.0, 0.3807)])
def test_a_proportional_gate_loses_stability_at_the_hopf_gain(
    residence_s: float, dead_time_s: float, published: float
) -> None:
    critical = critical_gain(residence_s, dead_time_s)
    assert critical == pytest.approx(published, abs=1e-4)
    swings = []
    for share in (0.95, 1.05):
        law = ProportionalGate(
            Every(period_s=0.02), base_per_s=500.0 / residence_s, k_per_s=share * critical, setpoint_turns=500.0
        )
        plant = fluid(
            law,
            slots=1000,
            residence=Residence(mean_s=residence_s),
            dead_time_s=dead_time_s - 0.01,  # the sampled law acts half a period late on the average
            max_release_per_s=1e9,
            horizon_s=80.0 * dead_time_s,
            step_s=0.01,
            bin_s=0.1,
        )
        busy = np.asarray(plant.run()["decoding_turns_mean"]) - 500.0
        swings.append(np.abs(busy[-len(busy) // 10 :]).max())
    # Above the gain the cycle grows until the rate is clipped at 0: base / k = 500 / (k T) from the setpoint.
    clipped = 500.0 / (1.05 * critical * residence_s)
    assert swings[0] < 0.2 * clipped
    assert swings[1] > clipped


# ------------------------------------------------ the naive predictor's slow mode
@pytest.mark.slow
def test_the_naive_predictor_crawls_at_141_seconds_from_a_cold_start() -> None:
    # It believes what it first retired, a third of the full rate, and then what its starved pool retires.
    law = PredictiveBufferNaive(Every(period_s=0.05), dead_time_s=10.0, full_per_s=30.0, buffer_ratio=0.1)
    columns = fluid(law, horizon_s=300.0, step_s=0.01, bin_s=0.5).run()
    t, busy = np.asarray(columns["t_s"]), np.asarray(columns["decoding_turns_mean"])
    # While slots are free it makes for N + B*, which it would reach only in the limit.
    slow = (t > 60.0) & (busy < 0.98 * 512)
    slope = np.polyfit(t[slow], np.log(1.1 * 512 - busy[slow]), 1)[0]
    assert slow.sum() > 300
    assert -1.0 / slope == pytest.approx(141.0, rel=0.02)


@pytest.mark.slow
def test_the_predictor_fills_the_same_pool_at_once_whatever_rate_it_was_told() -> None:
    law = PredictiveBuffer(Every(period_s=0.05), dead_time_s=10.0, full_per_s=30.0, buffer_ratio=0.1)
    busy = np.asarray(fluid(law, horizon_s=60.0, step_s=0.01).run()["decoding_turns_mean"])
    assert busy[-1] == pytest.approx(512.0, rel=0.01)


# ------------------------------------------------ steady states, and turns
def test_an_open_door_settles_at_littles_law() -> None:
    columns = fluid(
        HELD,
        arrivals_per_s=lambda t: 60.0,
        waiting_turns=0,
        horizon_s=80.0,
        max_release_per_s=1e9,
    ).run()
    last = {name: columns[f"{name}_mean"][-1] for name in ("decoding_turns", "filling_turns", "ready_turns")}
    assert last == pytest.approx({"decoding_turns": 300.0, "filling_turns": 600.0, "ready_turns": 0.0}, rel=2e-3)


@pytest.mark.parametrize(
    "residence",
    [
        Residence(mean_s=5.0),
        Residence(mean_s=5.0, shape="erlang", stages=4),
        Residence(mean_s=5.0, shape="fixed"),
    ],
    ids=lambda r: r.shape,
)
def test_a_full_pool_retires_n_over_t_whatever_the_residence(residence: Residence) -> None:
    plant = fluid(HELD, residence=residence, max_release_per_s=110.0, horizon_s=160.0)
    columns = plant.run()
    assert sum(columns["retired_turns"][-400:]) / 20.0 == pytest.approx(102.4, rel=2e-3)
    assert columns["decoding_turns_mean"][-1] == pytest.approx(512.0, rel=1e-6)
    gained = columns["ready_turns_mean"][-1] - columns["ready_turns_mean"][-401]
    assert gained == pytest.approx((110.0 - 102.4) * 20.0, rel=0.02)


def test_flow_is_conserved() -> None:
    law = RetirementGate(Every(period_s=0.05), open_at_ratio=0.95, close_at_ratio=0.999)
    columns = fluid(law, horizon_s=60.0).run()
    for k in (10, 300, 900, len(columns["t_s"]) - 1):
        let_in, out = (sum(columns[name][: k + 1]) for name in ("admitted_turns", "retired_turns"))
        # The levels are means over the bin, so they lag its end by a little.
        assert let_in - out == pytest.approx(columns["in_flight_turns_mean"][k], abs=12.0)


def test_a_cap_on_work_in_flight_is_never_passed() -> None:
    class Cap:
        cadence = Every(period_s=0.5)

        def act(self, y: AdmissionReading) -> AdmissionCommand:
            return AdmissionCommand(in_flight_cap_turns=700)

    columns = fluid(Cap(), horizon_s=60.0).run()
    assert max(columns["in_flight_turns_max"]) <= 700.0 + 1e-6
    assert columns["in_flight_turns_mean"][-1] == pytest.approx(700.0, rel=1e-3)
    lap = columns["decoding_turns_mean"][-300:]  # what was let in at once still goes round: mean over one lap
    assert sum(lap) / 300 == pytest.approx(700.0 / 3.0, rel=0.01)


@pytest.mark.parametrize(
    ("residence", "law", "message"),
    [
        (Residence(mean_s=5.0, shape="lognormal"), HELD, "lognormal"),
        (Residence(mean_s=5.0), Hold(On(event="retirement"), AdmissionCommand()), "event-triggered"),
    ],
)
def test_what_has_no_fluid_form_is_refused(residence: Residence, law: Hold, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fluid(law, residence=residence)


def test_an_endless_line_before_an_unlimited_door_has_no_flow_and_is_refused() -> None:
    with pytest.raises(ValueError, match="max_release_per_s"):
        fluid(HELD, max_release_per_s=math.inf)
