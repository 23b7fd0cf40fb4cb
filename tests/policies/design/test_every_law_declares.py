"""Every registered law says what it is to theory, or says why it is nothing to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from orchestrator.messages import CapacityReading, Slot
from orchestrator.ports import Every
from policies.admission.early_reject import EarlyReject
from policies.admission.holdback import Holdback
from policies.admission.relay import Relay
from policies.admission.saturation_gate import SaturationGate
from policies.capacity.hpa import Hpa
from policies.capacity.planner import Planner
from policies.capacity.queue_model import QueueModel
from policies.design.capacity import steps_never_chatter
from policies.design.structure import (
    Declares,
    FeedForward,
    Multiplicative,
    OneForOne,
    RelayOnBusy,
    Scales,
    Steps,
    reason_for_none,
)
from policies.design.tandem_model import TandemModel
from scenarios.analyze import analyze
from scenarios.build import laws
from scenarios.conformance import shipped
from scenarios.conformance.readings import steady
from scenarios.schema.laws import LAW_TABLES, Candidate
from scenarios.schema.load import load

MODEL = TandemModel(slots=512, residence_s=5.0, dead_time_s=10.0, observation_s=0.025)
EVERY = Every(period_s=30.0)


@pytest.mark.parametrize(("slot", "kind"), [(slot, kind) for slot in LAW_TABLES for kind in shipped.kinds(slot)])
def test_every_registered_law_declares_a_structure_or_says_why_it_has_none(slot: str, kind: str) -> None:
    part = dict(shipped.examples(slot))[kind]
    law: object = laws.router_maker(part)() if slot == "routing" else laws.make_law(cast(Slot, slot), part, 1.0)
    law_made: object = None
    if isinstance(law, Declares):
        law_made = law.structure(MODEL)
    elif isinstance(law, Scales):
        law_made = law.scaling()
    reason = reason_for_none(law)
    assert law_made is not None or (reason is not None and len(reason.split()) >= 3)


def test_analyze_tells_the_reason_of_a_law_that_has_no_linearisation() -> None:
    base = load("full_empty_reference")
    limit = {"kind": "limit_vegas", "start_turns": 100, "least_turns": 20, "most_turns": 2000}
    batch = {"kind": "aimd", "most_turns": 512}
    candidate = Candidate.model_validate({"name": "limit", "admission": limit, "batching": batch})
    (result,) = analyze(base.model_copy(update={"candidates": (candidate,), "expect": {}}))
    assert result.prediction.verdict is None
    assert "dead band" in result.prediction.mechanism
    assert "sawtooth" in result.others["batching"]
    assert result.to_json()["other_loops"] == dict(result.others)


def test_gates_without_a_band_are_relays_on_fresh_readings_only() -> None:
    level = RelayOnBusy(open_at_turns=486.4, close_at_turns=486.4)
    gate = SaturationGate(EVERY, limit_ratio=0.95, stale_after_s=1.0, when_stale="open")
    assert gate.structure(MODEL) == level
    assert gate.structure(replace(MODEL, observation_s=0.6)) is None
    now = EarlyReject(EVERY, load="current", limit_ratio=0.95)
    assert now.structure(MODEL) == replace(level, refuses=True)
    assert EarlyReject(EVERY, load="predicted", limit_ratio=0.95, decode_s=5.0).structure(MODEL) is None
    kept = Holdback(EVERY, cap_turns=99, reserved=(), sojourn_s=1.0)
    assert kept.structure(MODEL) == OneForOne(cap_turns=99)
    open_low = Relay(EVERY, low_per_s=1.0, high_per_s=9.0, threshold_turns=50.0, band_turns=4.0)
    assert open_low.structure(MODEL) is None


def workers_asked(law: Any, **seen: Any) -> int:
    y = cast(CapacityReading, steady("capacity", 1, 30.0, 0.5))
    pool = next(pool for name, pool in y.pools.items() if name == "decode")
    shown = replace(y, pools={pool.configuration: pool._replace(**seen)}, backlog_turns=0, ready_turns=0)
    return int(next(iter(law.act(shown).target_workers.values())))


def test_the_autoscalers_declared_gain_is_its_slope_in_logarithms() -> None:
    def asked(load: int) -> int:
        options: dict[str, Any] = {"configuration": "decode", "measure": "turns", "target": 10.0, "most_workers": 10**7}
        law = Hpa(EVERY, **options, tolerance_ratio=0.0, down_window_s=0.0, up_workers=10**7, pending_aware=False)
        declared = law.scaling()
        assert isinstance(declared, Multiplicative)
        assert declared.gain == 1.0
        return workers_asked(
            law, active_workers=10_000, pending_workers=0, busy_slots=load, queued_turns=0, slots=10**7
        )

    low, high = asked(99_000), asked(101_000)
    assert np.log(high / low) / np.log(101 / 99) == pytest.approx(1.0, rel=0.01)


def test_the_queue_models_declared_lag_and_slope_are_what_it_does_to_a_sine() -> None:
    law = QueueModel(EVERY, configurations=("decode",), wait_s=0.5, most_workers=10**7, band_ratio=0.0, tau_s=60.0)
    declared = law.scaling()
    assert isinstance(declared, FeedForward)
    y = cast(CapacityReading, steady("capacity", 1, 30.0, 0.5))
    omega, step = 0.02, 5.0
    t = np.arange(0, 4000, step)
    asked = []
    for now in t:
        rate = 1e6 * (1 + 0.2 * np.sin(omega * now))
        shown = replace(y, now_s=float(now), at_s=float(now), arrival_per_s=float(rate), setpoint=None)
        (n,) = law.act(shown).target_workers.values()  # type: ignore[union-attr]
        asked.append(n)
    mu = next(pool.service_per_worker_per_s for name, pool in y.pools.items() if name == "decode")
    assert mu is not None
    late = t >= t[-1] - 2 * np.pi / omega * 6
    n = np.asarray(asked, dtype=float)[late]
    gain = 2 * np.mean((n - n.mean()) * np.exp(-1j * omega * t[late])) / (0.2e6 * -1j)
    expected = law.workers_per_rate(mu) / (1 + 1j * omega * declared.lag_s)
    assert gain == pytest.approx(expected, rel=0.06)
    assert (
        QueueModel(EVERY, configurations=("decode",), wait_s=0.5, most_workers=9, service="measured").scaling() is None
    )


def test_the_planners_declared_thresholds_are_where_it_moves() -> None:
    options: dict[str, Any] = {
        "configuration": "decode",
        "measure": "turns",
        "most_workers": 64,
        "up": 200,
        "down": 120,
    }
    bare = Planner(EVERY, **options, consolidation=False, observe_only=False)
    declared = bare.scaling()
    assert declared == Steps(configuration="decode", up=200, down=120, consolidation=False, waits=False)

    def moved(load: int) -> int:
        law = Planner(EVERY, **options, consolidation=False, observe_only=False)
        seen = {"active_workers": 4, "pending_workers": 0, "busy_slots": 4 * load, "queued_turns": 0, "slots": 4096}
        return workers_asked(law, **seen) - 4

    assert [moved(load) for load in (119, 120, 199, 200)] == [-1, 0, 0, 1]
    assert not steps_never_chatter(declared.down, declared.up, 2)
    flap = {analysis.candidate: analysis.prediction for analysis in analyze(load("flap_thresholds"))}
    assert flap["pair_1_0_0_6"].facts["flaps_at_most_workers"] == 2
    assert flap["pair_1_0_0_45"].facts["flaps_at_least_workers"] is None
    assert flap["consolidation_test"].facts["flaps_at_least_workers"] is None
