"""The counters of one pool, kept as they change, so that a reading costs nothing per worker."""

from __future__ import annotations

from orchestrator.messages import FILL_ROLES, PoolReading, Role
from orchestrator.turn import new
from plant.cluster_spec import ConfigurationSpec


class Pool:
    """Counters of the workers of one configuration; workers write, `reading` reads.

    The KV positions in use are a straight line between the changes of each batch, so their sum over the pool is kept
    as `kv_base_tokens + kv_rate_tokens_per_s x now`: exact at each worker's changes, and within one step's curvature
    between them.
    """

    __slots__ = (
        "active",
        "batch_cap",
        "busy_slots",
        "chunk_cap",
        "chunk_s_total",
        "context_total",
        "fill_s_total",
        "filled_total",
        "kv_base_tokens",
        "kv_rate_tokens_per_s",
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
    )

    def __init__(self, spec: ConfigurationSpec) -> None:
        self.spec = spec
        self.batch_cap = spec.slots if spec.slots is not None else 1 << 62
        self.chunk_cap = spec.chunk_tokens
        self.active = self.pending = 0
        self.busy_slots = self.queued_turns = self.queued_tokens = 0
        self.served_total = self.tokens_total = self.preempted_total = 0
        # For the service that a full worker would give, and what one fill cost it on the mean.
        self.filled_total = self.context_total = 0
        self.fill_s_total = 0.0
        self.kv_base_tokens = self.kv_rate_tokens_per_s = 0.0
        self.step_sum_s, self.stepping = 0.0, 0
        # Seconds of passes that went into new tokens, and those of all passes. Where they last, what is kept is the
        # instants at which workers stopped less those at which they began: `compute_s` and `step_span_s` add now.
        self.chunk_s_total = self.stepping_moment_s = 0.0

    def kv_used_tokens(self, now_s: float) -> int:
        """Return the KV positions in use at `now_s`, >= 0."""
        used = round(self.kv_base_tokens + self.kv_rate_tokens_per_s * now_s)
        return used if used > 0 else 0

    def compute_s(self, now_s: float) -> float:
        """Return the worker-seconds spent on new tokens so far."""
        return self.chunk_s_total + (self.busy_slots * now_s if self.spec.role in FILL_ROLES else 0.0)

    def step_span_s(self, now_s: float) -> float:
        """Return the worker-seconds spent on decode steps so far: those of all passes, less what new tokens took."""
        if self.spec.role in FILL_ROLES:
            return 0.0
        return self.stepping_moment_s + self.stepping * now_s - self.chunk_s_total

    def reading(self, now_s: float) -> PoolReading:
        """Return the counters as they stand at `now_s`."""
        spec = self.spec
        capacity = spec.kv_capacity_tokens
        active, draining = self.active, 0
        return new(
            PoolReading,
            (
                spec.name,
                spec.role,
                active,
                self.pending,
                draining,
                active * (spec.slots or 0),
                self.busy_slots,
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
        """Return what one full worker serves, judged by the mean turn so far; None before the first.

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
