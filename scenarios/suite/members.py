"""The library scenarios that form the suite and the leaderboard, grouped by what they test."""

from __future__ import annotations

from collections.abc import Mapping

SUITE: Mapping[str, tuple[str, ...]] = {
    "full and empty": ("full_empty_reference",),
    "mild": ("mild",),
    "gain against dead time": ("hopf",),
    "echo": ("echo",),
    "echo with a spread": ("echo_spread", "echo_dispersed"),
    "stale readings": ("stale_observation",),
    "service that drifts": ("service_drift",),
    "windup": ("windup_step", "windup_bursts"),
    "herd": ("herd",),
    "flap": ("flap_thresholds",),
    "pending workers": ("pending_blind", "planner_tick", "planner_tick_instant"),
    "quantiser": ("quantiser_noise",),
    "contaminated rate": ("contaminated_rate",),
    "interactive reserve": ("interactive_reserve",),
    "loops together": ("loops_together", "loops_apart", "role_flips", "kv_retract"),
    "early rejection": ("early_rejection",),
    "six remedies": ("six_remedies",),
    "pool scale": ("pool_scale_1", "pool_scale_8", "pool_scale_64", "pool_scale_128"),
    "aggregated or not": ("aggregated_vs_disaggregated",),
    "null": ("open_loop_null",),
    "faults": (
        "rack_loss",
        "storage_loss",
        "frozen_telemetry",
        "poisoned_request",
        "poisoned_request_unbounded",
        "retry_storm",
        "retry_storm_budget",
        "worsening_worker",
        "half_way_loads",
    ),
}
# The fixed field of the leaderboard: laws of one slot, on plants that do not depend on the law.
LEADERBOARD: tuple[str, ...] = ("full_empty_reference", "mild", "stale_observation", "service_drift", "windup_step")


def names() -> list[str]:
    """Return the library names of the suite, in order."""
    return [name for members in SUITE.values() for name in members]
