"""Forecasts of demand: exact where the day is exact, sure where counts are sure, and joined with what is announced."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.messages import DemandCommand, DemandReading
from orchestrator.ports import Every
from policies.demand.announced import Announced, Ramp
from policies.demand.holt_winters import HoltWinters
from policies.demand.kalman import Kalman
from policies.demand.seasonal_profile import SeasonalProfile
from scenarios.errors import UserError
from scenarios.schema.load import load

PERIOD_S, LEAD_S, DAY_S = 600.0, 1800.0, 86_400.0
EVERY = Every(period_s=PERIOD_S)


def reading(at_s: float, arrived: int) -> DemandReading:
    return DemandReading(
        now_s=at_s,
        at_s=at_s,
        time_of_day_s=at_s % DAY_S,
        arrived_total=arrived,
        arrived_by_class={},
        prompt_tokens_total=0,
        arrival_per_s=None,
        applied=DemandCommand(),
    )


def played(law: Any, rate: Callable[[float], float], until_s: float, noise: int | None = None) -> list[float | None]:
    """Return a law's forecasts at every period, fed with the turns of `rate` (Poisson ones with a seed in `noise`)."""
    rng = None if noise is None else np.random.default_rng(noise)
    arrived, forecasts = 0.0, []
    for k in range(1, round(until_s / PERIOD_S) + 1):
        mean = rate((k - 0.5) * PERIOD_S) * PERIOD_S
        arrived += mean if rng is None else float(rng.poisson(mean))
        forecasts.append(law.act(reading(k * PERIOD_S, round(arrived))).forecast_per_s)
    return forecasts


def miss(forecasts: list[float | None], rate: Callable[[float], float], after_s: float) -> float:
    """Root mean square of forecast less truth, from `after_s` on."""
    errors = [
        forecast - rate((k + 1) * PERIOD_S + LEAD_S)
        for k, forecast in enumerate(forecasts)
        if forecast is not None and (k + 1) * PERIOD_S > after_s
    ]
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


def test_a_filter_finds_a_straight_line_and_looks_along_it() -> None:
    forecasts = played(Kalman(EVERY, lead_s=LEAD_S), lambda t: 10.0 + t / 3600.0, 40 * PERIOD_S)
    assert forecasts[:4] == [None] * 4, "silent for its first points"
    # What it saw last is the mean of a period, half a period old.
    assert forecasts[-1] == pytest.approx(10.0 + (40 * PERIOD_S + LEAD_S - 0.5 * PERIOD_S) / 3600.0, rel=0.02)


def test_a_filter_of_a_still_rate_is_the_mean_of_what_was_counted() -> None:
    still = Kalman(EVERY, lead_s=LEAD_S, level_ratio=0.0, trend_ratio=0.0)
    rng = np.random.default_rng(3)
    counts = rng.poisson(5.0 * PERIOD_S, 50)
    for k, arrived in enumerate(np.cumsum(counts), start=1):
        forecasts = still.act(reading(k * PERIOD_S, int(arrived))).forecast_per_s
    assert forecasts == pytest.approx(counts.mean() / PERIOD_S, rel=1e-3)


@pytest.mark.parametrize("rate_per_s", [0.02, 1.0, 50.0])
def test_a_filter_is_surer_of_busy_hours_than_of_quiet_ones(rate_per_s: float) -> None:
    forecasts = played(Kalman(EVERY, lead_s=0.0), lambda t: rate_per_s, 300 * PERIOD_S, noise=7)
    spread = float(np.std([forecast for forecast in forecasts[100:] if forecast is not None]))
    counted = math.sqrt(rate_per_s / PERIOD_S)
    assert spread < counted, "below what one period's count would scatter by"


def test_a_filter_follows_a_day_better_than_the_present_rate_does() -> None:
    def day(t: float) -> float:
        return 20.0 + 12.0 * math.sin(2 * math.pi * t / DAY_S)

    filtered = miss(played(Kalman(EVERY, lead_s=LEAD_S), day, 2 * DAY_S, noise=1), day, 0.3 * DAY_S)
    present = miss(played(Kalman(EVERY, lead_s=0.0), day, 2 * DAY_S, noise=1), day, 0.3 * DAY_S)
    assert filtered < 0.7 * present


LAUNCH = Ramp(begins_s=30_000.0, full_s=32_400.0, falls_s=40_200.0, ends_s=41_400.0, add_per_s=15.0)


def launch(t: float) -> float:
    begins_s, full_s, falls_s, ends_s = LAUNCH.begins_s, LAUNCH.full_s, LAUNCH.falls_s, LAUNCH.ends_s
    return LAUNCH.add_per_s * max(
        0.0, min((t - begins_s) / (full_s - begins_s), 1.0, (ends_s - t) / (ends_s - falls_s))
    )


@pytest.mark.parametrize(
    "base",
    [
        lambda: HoltWinters(EVERY, lead_s=LEAD_S),
        lambda: SeasonalProfile(EVERY, lead_s=LEAD_S),
        lambda: Kalman(EVERY, lead_s=LEAD_S),
    ],
)
def test_what_is_announced_joins_the_forecast_of_the_rest(base: Callable[[], Any]) -> None:
    def all_of(t: float) -> float:
        return 10.0 + launch(t)

    joined = played(Announced(EVERY, lead_s=LEAD_S, ramps=(LAUNCH,), base=base()), all_of, 60_000.0)
    alone = played(base(), all_of, 60_000.0)
    plain = played(base(), lambda t: 10.0, 60_000.0)
    assert miss(joined, all_of, 6000.0) < 0.1
    assert miss(joined, all_of, 6000.0) < 0.2 * miss(alone, all_of, 6000.0), "a first time is in no history"
    after = [(a, b) for a, b in zip(joined, plain) if a is not None and b is not None][-10:]
    assert all(a == pytest.approx(b, abs=0.05) for a, b in after), "the launch leaves no trace in the history"


@given(t=st.floats(0.0, 60_000.0))
def test_the_announced_turns_are_the_integral_of_the_announced_rate(t: float) -> None:
    law = Announced(EVERY, lead_s=0.0, ramps=(LAUNCH,))
    grid = np.linspace(0.0, t, 4001)
    assert law._announced_turns(t) == pytest.approx(
        float(np.trapezoid([law._announced(x) for x in grid], grid)), rel=2e-3, abs=5.0
    )


def test_a_base_that_looks_elsewhere_is_one_line() -> None:
    table = (
        '{kind="announced", lead_s=60, ramps=[{begins_s=1, full_s=2, falls_s=3, ends_s=4, add_per_s=1}], '
        'base={kind="kalman", lead_s=30}}'
    )
    with pytest.raises(UserError, match=r"base\.lead_s = 30 must be lead_s = 60"):
        load("loops_together", [f"candidates.apart.demand={table}"])
