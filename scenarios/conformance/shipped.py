"""An example of every registered law, for the suite and for the documentation's table. A test holds it complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from orchestrator.messages import Slot
from scenarios.schema.laws import admission, batching, capacity, demand, retention, routing
from scenarios.schema.laws.part import FileLaw

PARTS: Mapping[str, Any] = {
    "admission": admission.Admission,
    "batching": batching.Batching,
    "capacity": capacity.Capacity,
    "demand": demand.Demand,
    "retention": retention.Retention,
    "routing": routing.Routing,
}
RATES = {"low_per_s": 20.0, "high_per_s": 60.0}
SIZES = {"configuration": "decode", "low_workers": 10, "high_workers": 20}
LIMIT = {"start_turns": 100, "least_turns": 20, "most_turns": 200}
BATCH = {"least_turns": 1, "most_turns": 64}
# Parameters without a default, by slot and kind; the worlds of `readings` have 100 slots, L about 0.5 s, T = 2.5 s.
EXAMPLES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "admission": {
        "retirement_gate": {"open_at_ratio": 0.95, "close_at_ratio": 1.0},
        "credit": {"cap_turns": 120},
        "inflight_credit_gate": {"open_at_turns": 115, "close_at_turns": 125},
        "proportional_gate": {"base_per_s": 40, "k_per_s": 0.2, "setpoint_turns": 100},
        "paced_wip": {"residence_s": 2.5, "dead_time_s": 0.5},
        "predictive_buffer": {"dead_time_s": 0.5, "full_per_s": 40},
        "predictive_buffer_naive": {"dead_time_s": 0.5, "full_per_s": 40},
        "pi_backlog": {"dead_time_s": 0.5, "full_per_s": 40},
        "saturation_gate": {"limit_ratio": 0.95, "stale_after_s": 2.0, "when_stale": "closed"},
        "step": {**RATES, "hold_s": 60.0},
        "prbs": {**RATES, "hold_s": 5.0},
        "relay": {**RATES, "threshold_turns": 50, "band_turns": 5},
        "limit_aimd": {**LIMIT, "timeout_s": 5.0},
        "limit_vegas": LIMIT,
        "limit_gradient2": LIMIT,
        "limit_envoy": LIMIT,
        "early_reject": {"load": "predicted", "limit_ratio": 1.0, "fill_s": 0.5, "decode_s": 2.5},
        "dagor": {"ranking": ["interactive", "standard", "batch"], "limit_s": 0.5},
        "holdback": {"cap_turns": 120, "reserved": ["interactive"], "sojourn_s": 3.0},
    },
    "batching": {
        "slo_cap": {**BATCH, "base_s": 0.01},
        "aimd": BATCH,
        "slew_limited": {**BATCH, "base_s": 0.01, "start_turns": 16, "settle_s": 5.0},
        "small_batch": BATCH,
    },
    "capacity": {
        "hpa": {"configuration": "decode", "target": 0.7, "most_workers": 30},
        "planner": {"configuration": "decode", "up": 0.9, "down": 0.5, "most_workers": 30, "down_s": 120.0},
        "queue_model": {"configurations": ["prefill", "decode"], "wait_s": 0.5, "most_workers": 40},
        "mpc": {"configuration": "decode", "most_workers": 40},
        "step": {**SIZES, "hold_s": 600.0},
        "prbs": {**SIZES, "hold_s": 120.0},
        "relay": {**SIZES, "threshold_workers": 15},
    },
    "demand": {
        "holt_winters": {"lead_s": 1200.0, "bins": 24},
        "seasonal_profile": {"lead_s": 1200.0, "bins": 24},
        "kalman": {"lead_s": 1200.0},
        "announced": {
            "lead_s": 600.0,
            "base": {"kind": "holt_winters", "lead_s": 600.0},
            "ramps": [{"begins_s": 3600, "full_s": 5400, "falls_s": 9000, "ends_s": 9600, "add_per_s": 20}],
        },
    },
    "retention": {
        "lru": {"capacity_tokens": 1_000_000},
        "ttl": {"ttl_s": 600.0},
        "reuse_classifier": {"rebuild_price_per_s": 1.0},
    },
    "routing": {
        "state_aware": {"turn_s": 0.5},
        "shortest_work": {"tokens_per_s": 10_000},
        "context_class": {
            "bounds_tokens": [8192],
            "configurations": [["prefill", "decode", "short"], ["long"]],
        },
    },
}


def kinds(slot: str) -> dict[str, type[Any]]:
    """Return the table class of every law registered in a slot, by kind; laws of a user's file aside."""
    union = get_args(PARTS[slot])[0]
    return {part.model_fields["kind"].annotation.__args__[0]: part for part in get_args(union) if part is not FileLaw}


def examples(slot: str) -> Iterator[tuple[str, Any]]:
    """Yield (kind, table) of every law registered in a slot, made with the example's parameters."""
    for kind, part in kinds(slot).items():
        yield kind, part(kind=kind, **EXAMPLES.get(slot, {}).get(kind, {}))


SLOTS: tuple[Slot, ...] = ("admission", "batching", "capacity", "demand", "retention")
