"""Which library scenarios are the suite, and what each stands for."""

from __future__ import annotations

from collections.abc import Mapping

SUITE: Mapping[str, tuple[str, ...]] = {
    "S1 full and empty": ("full_empty_reference",),
    "S2 mild": ("mild",),
    "S3 gain against dead time": ("hopf",),
    "S4 echo": ("echo",),
    "S5 echo with a spread": ("echo_spread", "echo_dispersed"),
    "S6 stale readings": ("stale_observation",),
    "S7 service that drifts": ("service_drift",),
    "S8 windup": ("windup_step", "windup_bursts"),
    "S9 herd": ("herd",),
    "S10 flap": ("flap_thresholds",),
    "S11 pending workers": ("pending_blind", "planner_tick", "planner_tick_instant"),
    "S12 quantiser": ("quantiser_noise",),
    "S13 contaminated rate": ("contaminated_rate",),
    "S14 interactive reserve": ("interactive_reserve",),
    "S15 loops together": ("loops_together", "loops_apart", "role_flips", "kv_retract"),
    "early rejection": ("early_rejection",),
    "six remedies": ("six_remedies",),
    "pool scale": ("pool_scale_1", "pool_scale_8", "pool_scale_64", "pool_scale_128"),
    "aggregated or not": ("aggregated_vs_disaggregated",),
    "null": ("open_loop_null",),
}
# The fixed field of the leaderboard: laws of one slot, on plants that do not depend on the law.
LEADERBOARD: tuple[str, ...] = ("full_empty_reference", "mild", "stale_observation", "service_drift", "windup_step")


def names() -> list[str]:
    """Return the library names of the suite, in order."""
    return [name for members in SUITE.values() for name in members]
