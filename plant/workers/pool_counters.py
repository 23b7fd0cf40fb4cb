"""The counters and caps of one pool, kept as they change, so that a reading costs nothing per worker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from orchestrator.levels import TimeWeightedLevel, TimeWeightedRamp
from orchestrator.messages import DECODES, FILL_ROLES, BatchCommand, PoolReading, Role
from orchestrator.ports import Applied
from orchestrator.turn import ConfigurationName, new
from plant.cluster_spec import ConfigurationSpec

UNLIMITED = 1 << 62


class Pool:
    """Counters and caps of the workers of one configuration; workers write, `reading` reads.

    `busy` (turns in decode batches or under fill), `workers` (those in service) and `kv` are weighted by time, for the
    record. The KV positions in use are a straight line between the changes of each batch, so their sum over the pool is
    one too: exact at each worker's changes, and within one step's curvature between them. `kv` is that sum over the
    capacity of the workers in service; None where the pool models no memory.
    """

    __slots__ = (
        "batch_cap",
        "busy",
        "chunk_cap",
        "chunk_s_total",
        "context_total",
        "fill_s_total",
        "filled_total",
        "kv",
        "pending",
        "preempted_total",
        "queued_tokens",
        "queued_turns",
        "served_total",
        "spec",
        "step_sum_s",
        "stepping",
        "stepping_moment_s",
        "tokens_total",
        "workers",
    )

    def __init__(self, spec: ConfigurationSpec) -> None:
        self.spec = spec
        self.batch_cap = UNLIMITED if spec.slots is None else spec.slots
        self.chunk_cap = spec.chunk_tokens
        self.busy, self.workers = TimeWeightedLevel(), TimeWeightedLevel()
        self.kv = TimeWeightedRamp() if spec.kv_capacity_tokens else None
        self.pending = 0
        self.queued_turns = self.queued_tokens = 0
        self.served_total = self.tokens_total = self.preempted_total = 0
        # For the service that a full worker would give, and what one fill cost it on average.
        self.filled_total = self.context_total = 0
        self.fill_s_total = 0.0
        self.step_sum_s, self.stepping = 0.0, 0
        # Seconds of passes that went into new tokens, and those of all passes. Where they last, what is kept is the
        # instants at which workers stopped less those at which they began: `compute_s` and `step_span_s` add now.
        self.chunk_s_total = self.stepping_moment_s = 0.0

    @property
    def slots(self) -> int | None:
        """Decode slots in force on each worker, within the cap that was set; None: unlimited."""
        return None if self.batch_cap == UNLIMITED else self.batch_cap

    def set_batch_cap(self, turns: int) -> int:
        """Cap every worker's batch, within its slots; return the cap in force."""
        limit = self.spec.slots
        self.batch_cap = max(1, turns if limit is None else min(turns, limit))
        return self.batch_cap

    def set_chunk_cap(self, tokens: int) -> int:
        """Cap every worker's chunk of new tokens in one pass; return the cap in force."""
        self.chunk_cap = max(1, tokens)
        return self.chunk_cap

    @property
    def active(self) -> int:
        """The workers in service."""
        return int(self.workers.value)

    @property
    def busy_slots(self) -> int:
        """The turns in decode batches or under fill."""
        return int(self.busy.value)

    def add_workers(self, change: int, now_s: float) -> None:
        """Note that workers began or ended their service."""
        self.workers.add(change, now_s)
        capacity = self.spec.kv_capacity_tokens
        if self.kv is not None and capacity:
            self.kv.set_scale(1.0 / (capacity * self.workers.value or 1), now_s)

    def kv_used_tokens(self, now_s: float) -> int:
        """Return the KV positions in use at `now_s`, >= 0."""
        kv = self.kv
        used = 0 if kv is None else round(kv.base + kv.rate_per_s * now_s)
        return used if used > 0 else 0

    def compute_s(self, now_s: float) -> float:
        """Return the worker-seconds spent on new tokens so far."""
        return self.chunk_s_total + (self.busy.value * now_s if self.spec.role in FILL_ROLES else 0.0)

    def step_span_s(self, now_s: float) -> float:
        """Return the worker-seconds spent on decode steps so far: those of all passes, less what new tokens took."""
        if self.spec.role in FILL_ROLES:
            return 0.0
        return self.stepping_moment_s + self.stepping * now_s - self.chunk_s_total

    def reading(self, now_s: float) -> PoolReading:
        """Return the counters as they stand at `now_s`."""
        spec = self.spec
        capacity = spec.kv_capacity_tokens
        active, draining = int(self.workers.value), 0
        return new(
            PoolReading,
            (
                spec.name,
                spec.role,
                active,
                self.pending,
                draining,
                active * (spec.slots or 0),
                int(self.busy.value),
                self.queued_turns,
                self.queued_tokens,
                self.served_total,
                self.tokens_total,
                self.preempted_total,
                None if capacity is None else self.kv_used_tokens(now_s),
                None if capacity is None else capacity * active,
                self.step_sum_s / self.stepping if self.stepping else None,
                self.service_per_worker_per_s(),
            ),
        )

    def service_per_worker_per_s(self) -> float | None:
        """Return what one full worker serves, estimated from the mean turn so far; None before the first.

        A full batch of S turns, each with the mean context C and mean output L, retires S / (L x step(S, S C)) a
        second; an aggregated worker also pays each turn's fill.
        """
        spec = self.spec
        fill_s = self.fill_s_total / self.filled_total if self.filled_total else None
        if spec.role in FILL_ROLES:
            return 1.0 / fill_s if fill_s else None
        if spec.times is None or spec.slots is None or not self.served_total:
            return None
        context = self.context_total / self.served_total
        slots = spec.slots
        if spec.kv_capacity_tokens is not None:
            slots = max(1, min(slots, int(spec.kv_capacity_tokens / max(context, 1.0))))
        steps = max(1.0, self.tokens_total / self.served_total - 1.0)
        turn_s = steps * spec.times.step_s(slots, round(slots * context)) / slots
        return 1.0 / (turn_s + (fill_s or 0.0 if spec.role is Role.AGGREGATED else 0.0))


def set_caps(pools: Iterable[Pool], command: BatchCommand) -> Applied:
    """Apply a batching command to pools, each within its limits; only workers that decode have a batch."""
    batch, chunk = command.batch_cap_turns, command.chunk_cap_tokens
    slots: dict[ConfigurationName, int] = {}
    chunks: list[int] = []
    for pool in pools:
        if batch is not None and pool.spec.role in DECODES:
            slots[pool.spec.name] = pool.set_batch_cap(batch)
        if chunk is not None:
            chunks.append(pool.set_chunk_cap(chunk))
    applied = replace(
        command, batch_cap_turns=max(slots.values(), default=None), chunk_cap_tokens=max(chunks, default=None)
    )
    clipped = any(cap != batch for cap in slots.values()) or applied != command
    return Applied(applied if applied != command else command, clipped, slots)
