"""Readings that a law may meet: hypothesis strategies for any of them, and three steady worlds made by hand.

Needs hypothesis, of the `dev` extra; so nothing outside this room, `scenarios.testing` and the tests imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, get_type_hints

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from orchestrator.control import EMPTY
from orchestrator.messages import (
    AdmissionCommand,
    AdmissionReading,
    BatchReading,
    CapacityCommand,
    CapacityReading,
    ClassReading,
    DemandCommand,
    DemandReading,
    PoolReading,
    Readings,
    RetentionReading,
    ReuseReading,
    Role,
    Slot,
    TierReading,
)
from orchestrator.turn import ClassName, ConfigurationName

READING: Mapping[Slot, type[Any]] = {
    "admission": AdmissionReading,
    "batching": BatchReading,
    "capacity": CapacityReading,
    "demand": DemandReading,
    "retention": RetentionReading,
}
ROLES: Mapping[str, Role] = {
    "prefill": Role.PREFILL,
    "midfill": Role.MIDFILL,
    "decode": Role.DECODE,
    "aggregated": Role.AGGREGATED,
    "spare": Role.IDLE,
}
CLASSES = ("interactive", "standard", "batch", "default")
# From nothing to far beyond any cluster; what lies between matters less than what does not divide.
VALUES = (0, 0, 1e-9, 0.5, 1, 2, 3, 7.5, 20, 100, 511, 512, 5000, 1e6, 1e12)
SPANS_S = (0.0, 1e-3, 0.05, 0.5, 5.0, 30.0, 600.0, 1e5)
MADE = ("now_s", "at_s", "applied", "setpoint", "by_class", "pools", "tiers", "reuse", "time_of_day_s")


def _field(name: str, kind: str, value: float, missing: bool) -> Any:
    """Turn a drawn number into what the field holds."""
    if missing and "None" in kind:
        return None
    if name.endswith("_ratio"):
        return value / (1.0 + value)
    return int(value) if "int" in kind else float(value)


def _drawn(draw: Any, message: type[Any], skip: tuple[str, ...] = ()) -> dict[str, Any]:
    named = {name: str(kind) for name, kind in get_type_hints(message).items() if name not in skip}
    values = draw(st.lists(st.sampled_from(VALUES), min_size=len(named), max_size=len(named)))
    missing = draw(st.lists(st.booleans(), min_size=len(named), max_size=len(named)))
    return {name: _field(name, kind, v, gone) for (name, kind), v, gone in zip(named.items(), values, missing)}


@st.composite
def _pools(draw: Any) -> dict[ConfigurationName, PoolReading]:
    pools = {}
    for name, role in ROLES.items():
        values = _drawn(draw, PoolReading, ("configuration", "role"))
        for count in ("active_workers", "pending_workers", "draining_workers"):
            values[count] = min(values[count], 5000)
        pools[ConfigurationName(name)] = PoolReading(configuration=ConfigurationName(name), role=role, **values)
    return pools


@st.composite
def readings(draw: Any, slot: Slot) -> Readings:
    """Draw one reading of a slot: extreme levels, missing measurements, a sample of any age."""
    message = READING[slot]
    now_s = draw(st.sampled_from(SPANS_S))
    values = _drawn(draw, message, MADE)
    values |= {"now_s": now_s, "at_s": draw(st.sampled_from([now_s, 0.9 * now_s, 0.0])), "applied": EMPTY[slot]}
    names = {f.name for f in fields(message)}
    if "by_class" in names:
        values["by_class"] = {ClassName(name): ClassReading(**_drawn(draw, ClassReading)) for name in CLASSES}
    if "pools" in names:
        values["pools"] = draw(_pools())
    if "arrived_by_class" in names:
        values["arrived_by_class"] = {ClassName(name): values["arrived_total"] // 4 for name in CLASSES}
    if "time_of_day_s" in names:
        values["time_of_day_s"] = now_s % 86_400.0
    if "tiers" in names:
        values["tiers"] = tuple(TierReading(name=n, **_drawn(draw, TierReading, ("name",))) for n in ("dram", "ssd"))
        values["reuse"] = tuple(draw(_reuse(kind)) for kind in CLASSES[:2])
    if "setpoint" in names:
        values["setpoint"] = draw(setpoints(slot))
    reading: Readings = message(**values)
    return reading


@st.composite
def _reuse(draw: Any, kind: str) -> ReuseReading:
    idle = sorted(draw(st.lists(st.integers(0, 10**6), min_size=4, max_size=4)), reverse=True)
    shares = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 1.0]), min_size=4, max_size=4))
    values = _drawn(draw, ReuseReading, ("kind", "ages_s", "idle", "reused"))
    reused = tuple(int(n * share) for n, share in zip(idle, shares))
    return ReuseReading(kind=kind, ages_s=(60.0, 600.0, 3600.0, 86_400.0), idle=tuple(idle), reused=reused, **values)


def setpoints(slot: Slot) -> SearchStrategy[Any]:
    """Draw what the slower loop says: nothing, an empty command, or a word to this slot."""
    word = st.sampled_from(VALUES)
    if slot == "batching":
        return st.none() | st.builds(AdmissionCommand, batch_setpoint_turns=word)
    if slot == "admission":
        return st.none() | st.builds(CapacityCommand, in_flight_setpoint_turns=word)
    if slot == "capacity":
        floors = st.none() | st.fixed_dictionaries({name: st.integers(0, 1000) for name in ROLES})
        return st.none() | st.builds(DemandCommand, forecast_per_s=st.none() | word, floor_workers=floors)
    return st.none()


@st.composite
def sequences(draw: Any, slot: Slot, length: int = 4) -> list[Readings]:
    """Draw what one loop might see: time goes on, counters grow, samples repeat when they are stale."""
    drawn = draw(st.lists(readings(slot), min_size=1, max_size=length))
    return in_order(drawn)


def in_order(drawn: list[Readings]) -> list[Readings]:
    """Make a sequence of independent readings one that a loop could see."""
    ordered: list[Readings] = []
    now_s = at_s = 0.0
    totals: dict[str, Any] = {}
    for y in drawn:
        fresh = y.at_s >= y.now_s or not ordered
        now_s += y.now_s
        if not fresh:
            ordered.append(replace(ordered[-1], now_s=now_s))
            continue
        at_s = max(at_s, now_s - 0.1 * y.now_s)
        named = [f.name for f in fields(y) if f.name.endswith("_total")]
        totals = {name: totals.get(name, 0) + getattr(y, name) for name in named}
        more: dict[str, Any] = {"now_s": now_s, "at_s": at_s, **totals}
        if isinstance(y, DemandReading):
            more["time_of_day_s"] = now_s % 86_400.0
        ordered.append(replace(y, **more))
    return ordered


# ------------------------------------------------ steady worlds
def pool(name: str, *, workers: int, load: float, rate_per_s: float, at_s: float) -> PoolReading:
    """Return a pool of `workers`, each `load` full, that serves `rate_per_s` in all since the start."""
    role = ROLES[name]
    slots = 16 * workers
    busy = round(load * slots)
    return PoolReading(
        configuration=ConfigurationName(name),
        role=role,
        active_workers=workers,
        pending_workers=0,
        draining_workers=0,
        slots=slots,
        busy_slots=busy,
        queued_turns=max(0, busy - slots),
        queued_tokens=max(0, busy - slots) * 1000,
        served_total=int(rate_per_s * at_s),
        tokens_total=int(rate_per_s * at_s * 200),
        preempted_total=0,
        kv_used_tokens=int(load * workers * 100_000),
        kv_capacity_tokens=workers * 100_000,
        step_s=0.02,
        service_per_worker_per_s=4.0,
    )


def steady(slot: Slot, k: int, period_s: float, load: float) -> Readings:
    """Return reading k of a world that never changes, at `load` (0 idle, 0.6 comfortable, 3 saturated).

    Counters grow at constant rates; a saturated world has a long line, late answers and full memory.
    """
    now_s = k * period_s
    rate_per_s = 40.0 * min(load, 1.0)
    late = load > 1.0
    backlog, ready = (5000, 64) if late else (0, 0)
    busy = 100.0 * min(load, 1.0)
    filling = 20.0 * load
    totals = {"arrived": 40.0 * load * now_s + backlog, "ended": rate_per_s * now_s}
    latency = {"ttft_s": 30.0 if late else 0.4 if load else None, "tpot_s": 0.2 if late else 0.02 if load else None}
    names = (ClassName("interactive"), ClassName("standard"), ClassName("batch"), ClassName("default"))
    row: dict[str, Any] = {"now_s": now_s, "at_s": now_s, "applied": EMPTY[slot]}
    if slot == "admission":
        flying = filling + ready + busy
        share = ClassReading(
            backlog_turns=backlog / 4,
            in_flight_turns=flying / 4,
            arrived_turns=totals["arrived"] / 4,
            retired_turns=totals["ended"] / 4,
        )
        row |= {"backlog_turns": backlog, "backlog_smoothed_turns": backlog, "filling_turns": filling}
        row |= {"ready_turns": ready, "decoding_turns": busy, "in_flight_turns": flying, "slots": 100}
        row |= {"busy_slots": busy, "arrived_total": totals["arrived"], "released_total": totals["ended"] + flying}
        row |= {"retired_total": totals["ended"], "arrival_per_s": 40.0 * load, "retire_per_s": rate_per_s, **latency}
        row |= {"wait_s": 60.0 if late else 0.0, "service_per_s": 40.0, "preempted_total": 0, "setpoint": None}
        row |= {"kv_used_ratio": min(load, 1.0), "by_class": dict.fromkeys(names, share)}
    elif slot == "batching":
        row |= {"workers": 10, "batch_turns": 10.0 * min(load, 1.0), "step_s": latency["tpot_s"]}
        row |= {"kv_used_ratio": min(load, 1.0), "ready_turns": ready, "backlog_turns": backlog, "preempted_total": 0}
        row |= {"tpot_s": latency["tpot_s"], "tpot_slo_s": 0.05, "setpoint": None}
    elif slot == "capacity":
        worlds = {"prefill": 4, "midfill": 2, "decode": 10, "aggregated": 4}
        pools = {
            ConfigurationName(n): pool(n, workers=w, load=load, rate_per_s=rate_per_s, at_s=now_s)
            for n, w in worlds.items()
        }
        pools[ConfigurationName("spare")] = pool("spare", workers=20, load=0.0, rate_per_s=0.0, at_s=now_s)
        row |= {"pools": pools, "arrival_per_s": 40.0 * load, "retire_per_s": rate_per_s, "backlog_turns": backlog}
        row |= {"ready_turns": ready, "setpoint": None, **latency}
    elif slot == "demand":
        arrived = int(totals["arrived"])
        row |= {"time_of_day_s": now_s % 86_400.0, "arrived_total": arrived, "arrival_per_s": 40.0 * load}
        row |= {"arrived_by_class": dict.fromkeys(names, arrived // 4), "prompt_tokens_total": 1000 * arrived}
    else:
        tiers = [
            TierReading(
                name=name,
                used_bytes=1e12 * min(load, 1.0),
                capacity_bytes=1e12,
                hit_tokens_total=int(100 * totals["ended"]),
                evicted_total=int(totals["ended"]) if late else 0,
                price_per_byte_s=1e-18,
            )
            for name in ("dram", "ssd")
        ]
        seen = int(totals["ended"])
        reuse = ReuseReading(
            kind="interactive",
            ages_s=(60.0, 600.0, 3600.0, 86_400.0),
            idle=(seen, seen // 2, seen // 4, seen // 8),
            reused=(seen // 2, seen // 8, seen // 32, 0),
            mean_bytes=1e8,
            rebuild_s=2.0,
        )
        row |= {"tiers": tuple(tiers), "reuse": (reuse,)}
    reading: Readings = READING[slot](**row)
    return reading
