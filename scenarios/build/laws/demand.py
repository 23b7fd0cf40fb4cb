"""From a demand law's table to the law."""

from __future__ import annotations

from typing import assert_never

from orchestrator.control import Law
from orchestrator.ports import Every
from policies.demand.announced import Announced
from policies.demand.hold import Hold as HoldDemand
from policies.demand.holt_winters import HoltWinters
from policies.demand.kalman import Kalman
from policies.demand.seasonal_profile import SeasonalProfile
from scenarios.build.laws.file import made_from_file
from scenarios.schema.laws import FileLaw, Hold
from scenarios.schema.laws import demand as parts


def demand(part: parts.Demand, period_s: float) -> Law:
    """Return the demand law that a table describes, acting every `period_s`."""
    every = Every(period_s=period_s)
    match part:
        case Hold():
            return HoldDemand(every)
        case FileLaw():
            return made_from_file(part, every)
        case parts.HoltWinters():
            return HoltWinters(
                every,
                lead_s=part.lead_s,
                bins=part.bins,
                alpha_ratio=part.alpha_ratio,
                beta_ratio=part.beta_ratio,
                gamma_ratio=part.gamma_ratio,
                damping_ratio=part.damping_ratio,
            )
        case parts.SeasonalProfile():
            return SeasonalProfile(
                every,
                lead_s=part.lead_s,
                bins=part.bins,
                weight_ratio=part.weight_ratio,
                tau_s=part.tau_s,
                given_per_s=part.given_per_s,
            )
        case parts.Kalman():
            return Kalman(
                every,
                lead_s=part.lead_s,
                level_ratio=part.level_ratio,
                trend_ratio=part.trend_ratio,
                least_points=part.least_points,
            )
        case parts.Announced():
            ramps = [(r.begins_s, r.full_s, r.falls_s, r.ends_s, r.add_per_s) for r in part.ramps]
            base = None if part.base is None else demand(part.base, period_s)
            return Announced(every, lead_s=part.lead_s, ramps=ramps, tau_s=part.tau_s, base=base)
    assert_never(part)
