"""Readings of each control slot, made of samples: rates are differences between a loop's own two samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import fsum

from orchestrator.messages import (
    DECODES,
    AdmissionCommand,
    AdmissionReading,
    BatchCommand,
    BatchReading,
    CapacityCommand,
    CapacityReading,
    ClassReading,
    DemandCommand,
    DemandReading,
    PoolReading,
    RetentionCommand,
    RetentionReading,
)
from orchestrator.telemetry import Sample
from orchestrator.turn import ClassName

DAY_S = 86_400.0


class Smoother:
    """Exponentially weighted mean over `span_s` seconds; the first value starts it."""

    __slots__ = ("_at_s", "_span_s", "value")

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._at_s = math.nan
        self.value = math.nan

    def update(self, value: float, at_s: float) -> float:
        """Take in a value seen at `at_s` and return the mean."""
        if self.value != self.value or self._span_s <= 0.0:
            self.value = value
        elif at_s > self._at_s:
            self.value += (1.0 - math.exp(-(at_s - self._at_s) / self._span_s)) * (value - self.value)
        self._at_s = at_s
        return self.value


def rate(now: int, before: int, span_s: float) -> float | None:
    """Return events per second between two samples; None where they are the same sample."""
    return (now - before) / span_s if span_s > 0.0 else None


def mean(total: float, total_before: float, count: int, count_before: int) -> float | None:
    """Return the mean of what was added between two samples; None where nothing was."""
    return (total - total_before) / (count - count_before) if count > count_before else None


def kv_used(pools: Sequence[PoolReading]) -> float | None:
    """Return the share of decode KV memory in use; None where the plant models none."""
    used = capacity = 0
    for pool in pools:
        if pool.role in DECODES and pool.kv_capacity_tokens:
            used += pool.kv_used_tokens or 0
            capacity += pool.kv_capacity_tokens
    return used / capacity if capacity else None


def full_rate(pools: Sequence[PoolReading]) -> float | None:
    """Return what the decode pools serve when full, turns a second; None where the plant does not say."""
    rates = [
        p.active_workers * p.service_per_worker_per_s
        for p in pools
        if p.role in DECODES and p.service_per_worker_per_s is not None
    ]
    return fsum(rates) if rates else None


def admission(
    now_s: float,
    y: Sample,
    before: Sample,
    names: Sequence[ClassName],
    smoothed: float,
    applied: AdmissionCommand,
    setpoint: CapacityCommand | None,
) -> AdmissionReading:
    """What the admission law sees."""
    span_s = y.at_s - before.at_s
    pools = tuple(y.plant.pools.values())
    return AdmissionReading(
        now_s=now_s,
        at_s=y.at_s,
        backlog_turns=y.backlog,
        backlog_smoothed_turns=smoothed,
        filling_turns=y.filling,
        ready_turns=y.ready,
        decoding_turns=y.decoding,
        in_flight_turns=y.in_flight,
        slots=y.slots,
        busy_slots=y.busy,
        arrived_total=y.arrived,
        released_total=y.released,
        retired_total=y.retired,
        arrival_per_s=rate(y.arrived, before.arrived, span_s),
        retire_per_s=rate(y.retired, before.retired, span_s),
        wait_s=0.0 if y.oldest_s is None else y.at_s - y.oldest_s,
        ttft_s=mean(y.ttft_sum_s, before.ttft_sum_s, y.ttft_count, before.ttft_count),
        tpot_s=mean(y.tpot_sum_s, before.tpot_sum_s, y.tpot_count, before.tpot_count),
        service_per_s=full_rate(pools),
        preempted_total=y.preempted,
        kv_used_ratio=kv_used(pools),
        by_class={
            name: ClassReading(
                backlog_turns=c.backlog, in_flight_turns=c.in_flight, arrived_turns=c.arrived, retired_turns=c.retired
            )
            for name, c in zip(names, y.classes)
        },
        applied=applied,
        setpoint=setpoint,
    )


def batching(
    now_s: float,
    y: Sample,
    before: Sample,
    tpot_slo_s: float | None,
    applied: BatchCommand,
    setpoint: AdmissionCommand | None,
) -> BatchReading:
    """What the batching law sees."""
    pools = [p for p in y.plant.pools.values() if p.role in DECODES]
    workers = sum(p.active_workers for p in pools)
    steps = [(p.step_s, p.active_workers) for p in pools if p.step_s is not None and p.active_workers]
    weight = sum(w for _, w in steps)
    return BatchReading(
        now_s=now_s,
        at_s=y.at_s,
        workers=workers,
        batch_turns=sum(p.busy_slots for p in pools) / workers if workers else None,
        step_s=fsum(s * w for s, w in steps) / weight if weight else None,
        kv_used_ratio=kv_used(pools),
        ready_turns=y.ready,
        backlog_turns=y.backlog,
        preempted_total=y.preempted,
        tpot_s=mean(y.tpot_sum_s, before.tpot_sum_s, y.tpot_count, before.tpot_count),
        tpot_slo_s=tpot_slo_s,
        applied=applied,
        setpoint=setpoint,
    )


def capacity(
    now_s: float, y: Sample, before: Sample, applied: CapacityCommand, setpoint: DemandCommand | None
) -> CapacityReading:
    """What the capacity law sees."""
    span_s = y.at_s - before.at_s
    return CapacityReading(
        now_s=now_s,
        at_s=y.at_s,
        pools=y.plant.pools,
        arrival_per_s=rate(y.arrived, before.arrived, span_s),
        retire_per_s=rate(y.retired, before.retired, span_s),
        backlog_turns=y.backlog,
        ready_turns=y.ready,
        ttft_s=mean(y.ttft_sum_s, before.ttft_sum_s, y.ttft_count, before.ttft_count),
        tpot_s=mean(y.tpot_sum_s, before.tpot_sum_s, y.tpot_count, before.tpot_count),
        applied=applied,
        setpoint=setpoint,
    )


def demand(
    now_s: float, y: Sample, before: Sample, names: Sequence[ClassName], midnight_s: float, applied: DemandCommand
) -> DemandReading:
    """What the demand law sees; `midnight_s` is the time of day at which the run began."""
    return DemandReading(
        now_s=now_s,
        at_s=y.at_s,
        time_of_day_s=(midnight_s + now_s) % DAY_S,
        arrived_total=y.arrived,
        arrived_by_class={name: c.arrived for name, c in zip(names, y.classes)},
        prompt_tokens_total=y.prompt_tokens,
        arrival_per_s=rate(y.arrived, before.arrived, y.at_s - before.at_s),
        applied=applied,
    )


def retention(now_s: float, y: Sample, applied: RetentionCommand) -> RetentionReading:
    """What the retention law sees."""
    return RetentionReading(now_s=now_s, at_s=y.at_s, tiers=y.plant.tiers, reuse=y.plant.reuse, applied=applied)
