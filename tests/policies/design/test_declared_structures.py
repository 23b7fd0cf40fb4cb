"""What each admission law declares itself to be, held against what it does when its reading is stirred."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Every, On
from policies.admission.credit import Credit
from policies.admission.inflight_credit_gate import InflightCreditGate
from policies.admission.paced_wip import PacedWip
from policies.admission.pi_backlog import PiBacklog
from policies.admission.predictive_buffer import PredictiveBuffer
from policies.admission.predictive_buffer_naive import PredictiveBufferNaive
from policies.admission.proportional_gate import ProportionalGate
from policies.admission.retirement_gate import RetirementGate
from policies.admission.self_tuning_predictor import SelfTuningPredictor
from policies.design.loops import on_axis
from policies.design.structure import OneForOne, RelayOnBusy, RelayOnWork, Smooth
from policies.design.tandem_model import TandemModel

MODEL = TandemModel(slots=512, residence_s=5.0, dead_time_s=10.0)
TICK_S, AMPLITUDE = 0.05, 20.0
EVERY = Every(period_s=TICK_S)
Stir = Callable[[float, float], dict[str, float]]

BASE = AdmissionReading(
    now_s=0.0,
    at_s=0.0,
    backlog_turns=512,
    backlog_smoothed_turns=512.0,
    filling_turns=1024,
    ready_turns=0,
    decoding_turns=512,
    in_flight_turns=1587,
    slots=512,
    busy_slots=512,
    arrived_total=0,
    released_total=0,
    retired_total=0,
    arrival_per_s=None,
    retire_per_s=None,
    wait_s=0.0,
    ttft_s=None,
    tpot_s=None,
    service_per_s=102.4,
    preempted_total=0,
    kv_used_ratio=None,
    by_class={},
    applied=AdmissionCommand(),
    setpoint=None,
)


def stir_busy(wave: float, _: float) -> dict[str, float]:
    return {"busy_slots": 300 + AMPLITUDE * wave}


def stir_work(wave: float, t: float) -> dict[str, float]:
    return {"in_flight_turns": 1587 + AMPLITUDE * wave, "retired_total": 102.4 * t}


def stir_work_that_moves(wave: float, t: float) -> dict[str, float]:
    return {**stir_work(wave, t), "released_total": 102.4 * (t + 10.0)}


def stir_buffer(wave: float, _: float) -> dict[str, float]:
    return {"busy_slots": 512, "ready_turns": 51.2 + AMPLITUDE * wave, "applied": AdmissionCommand()}  # type: ignore[dict-item]


def stir_retirements(wave_sum: float, t: float) -> dict[str, float]:
    return {"retired_total": 102.4 * t + AMPLITUDE * wave_sum}


LAWS = [
    (
        PiBacklog(EVERY, dead_time_s=10.0, full_per_s=102.4, buffer_ratio=0.1, tau_s=2.0),
        "at_decode",
        stir_buffer,
    ),
    (ProportionalGate(EVERY, base_per_s=60.0, k_per_s=0.1, setpoint_turns=300.0), "busy", stir_busy),
    (PacedWip(EVERY, residence_s=5.0, dead_time_s=10.0, kappa_ratio=1.0, buffer_ratio=0.1), "in_flight", stir_work),
    (PredictiveBuffer(EVERY, dead_time_s=10.0, full_per_s=102.4, buffer_ratio=0.1), "in_flight", stir_work),
    (PredictiveBufferNaive(EVERY, dead_time_s=10.0, full_per_s=102.4, buffer_ratio=0.1), "in_flight", stir_work),
    (
        PredictiveBufferNaive(EVERY, dead_time_s=10.0, full_per_s=102.4, buffer_ratio=0.1),
        "retirements",
        stir_retirements,
    ),
    (SelfTuningPredictor(EVERY, dead_time_s=10.0, full_per_s=102.4), "in_flight", stir_work_that_moves),
]


@pytest.mark.parametrize("omega", [0.05, 0.4])
@pytest.mark.parametrize(("law", "signal", "stir"), LAWS)
def test_a_declared_linearisation_is_what_the_law_does_to_a_small_sine(
    law: ProportionalGate | PacedWip | PredictiveBuffer | PredictiveBufferNaive | PiBacklog | SelfTuningPredictor,
    signal: str,
    stir: Stir,
    omega: float,
) -> None:
    law = deepcopy(law)  # its memory is of this sine alone
    lap = 2 * np.pi / omega
    t = np.arange(0, 12 * lap, TICK_S)
    # Retirements are given as a count: stirring their rate by a sine stirs the count by its integral.
    drive = np.sin(omega * t) if signal != "retirements" else (1 - np.cos(omega * t)) / omega
    rates = []
    for now, wave in zip(t, drive):
        command = law.act(replace(BASE, now_s=now, at_s=now, **stir(float(wave), float(now))))
        assert command.release_per_s is not None
        rates.append(command.release_per_s)
    late = t >= 6 * lap
    turn = np.exp(-1j * omega * t[late])
    u = np.asarray(rates)[late]
    gain = 2 * np.mean((u - u.mean()) * turn) / (AMPLITUDE * -1j)
    structure = law.structure(MODEL)
    assert isinstance(structure, Smooth)
    (declared,) = structure.linear.feedback[signal](on_axis(np.array([omega])))  # type: ignore[index]
    # A sample a tick makes the filter's lag late by half a tick, no more.
    assert gain == pytest.approx(-declared, rel=0.03)


def test_a_smooth_laws_set_point_is_where_it_asks_for_its_own_rate() -> None:
    for law, signal, _ in LAWS[1:5]:
        structure = law.structure(MODEL)
        at = {"busy_slots" if signal == "busy" else "in_flight_turns": structure.setpoint_turns}
        assert law.act(replace(BASE, **at)).release_per_s == pytest.approx(structure.rate_per_s, rel=0.01)


def thresholds(act: Callable[[float], AdmissionCommand], levels: np.ndarray) -> tuple[float, float]:
    up = next(level for level in levels if act(float(level)).gate_open is False)
    down = next(level for level in levels[::-1] if act(float(level)).gate_open is True)
    return down, up


def test_declared_relays_switch_where_they_say() -> None:
    gate = RetirementGate(EVERY, open_at_ratio=0.5, close_at_ratio=0.75)
    relay = gate.structure(MODEL)
    assert isinstance(relay, RelayOnBusy)
    switched = thresholds(lambda x: gate.act(replace(BASE, busy_slots=x)), np.arange(0, 513))
    assert switched == (relay.open_at_turns, relay.close_at_turns)
    work = InflightCreditGate(EVERY, open_at_turns=1500, close_at_turns=1600)
    on_work = work.structure(MODEL)
    assert isinstance(on_work, RelayOnWork)
    switched = thresholds(lambda x: work.act(replace(BASE, in_flight_turns=x)), np.arange(1400, 1701))
    assert switched == (on_work.open_at_turns, on_work.close_at_turns)


def test_credit_declares_the_cap_that_it_commands() -> None:
    law = Credit(On(event="retirement"), cap_turns=77)
    assert law.structure(MODEL) == OneForOne(cap_turns=77)
    assert law.act(BASE).in_flight_cap_turns == 77
