"""Name the likely mechanism of a cycle: its period against the dead time and the decision interval, and its levels.

The ratios are those of `policies/design`: a proportional loop at its edge swings with a period of 2 to 4 dead times (2
behind a short lag, 4 behind an integrator); a relay gate between 2 and 6; multiplicative scaling with d unseen ticks
in 4 d + 2 ticks; a ring of one-for-one release once a transit; thresholds too close for the pool in 2 decisions.
"""

from __future__ import annotations

import numpy as np

from scenarios.catalogue.verdict import SignalVerdict
from scenarios.verdict.types import Floats

DRIVEN = "an outside load of the same period, not the controller: the controller only follows it"
CALENDAR, CALENDAR_RATIO = {"wave of a day": 86400.0, "wave of a week": 604800.0}, 0.02
# A mechanism that predicts a count of decisions a period is named only where that many were seen, within this share.
COUNT_RATIO, MOST_UNSEEN = 0.2, 8


def least_move(values: Floats, held: bool) -> float:
    """Return the smallest move that counts: one level, or three times the noise from sample to sample.

    The noise is what changes from sample to sample beyond what two samples later is undone: a flip is no noise.
    """
    if held:
        levels = np.unique(values)
        return float(np.diff(levels).min()) if len(levels) > 1 else 1.0
    pairs = [np.abs(values[k:] - values[:-k]) for k in (1, 2) if len(values) > k]
    noise = 1.4826 * min((float(np.median(pair)) for pair in pairs), default=0.0)
    return max(3 * noise, 0.02 * float(np.ptp(values)), 1e-12)


def decision_interval_s(t_s: Floats, values: Floats) -> float | None:
    """Return the usual time between two changes of a held series, seconds (None: fewer than four)."""
    changed = t_s[1:][np.diff(values) != 0]
    return float(np.median(np.diff(changed))) if len(changed) >= 4 else None


def likely(
    verdict: SignalVerdict, t_s: Floats, values: Floats, *, held: bool, dead_time_s: float | None, loads: bool
) -> str:
    """Say in one sentence what probably makes the cycle, or what would have to be known to say it."""
    hint = "" if loads else "; give the load column to rule out a load that swings by itself"
    if verdict.verdict == "hunting":
        return "a law that answers noise or its own last move: widen its band, its dwell or its averaging" + hint
    if verdict.verdict == "driven":
        clock = calendar_period(verdict.period_s)
        return f"the {clock}, not the controller" if clock and not loads else DRIVEN
    if not verdict.oscillates or verdict.period_s is None:
        return "none: no cycle was found"
    steps = _scaling(verdict.period_s, t_s, values) if held else None
    if steps is not None:
        return steps + hint
    if dead_time_s is not None:
        return _by_dead_time(verdict.period_s, dead_time_s) + hint
    low, high = verdict.period_s / 4, verdict.period_s / 2
    return f"a delay of {low:.3g} to {high:.3g} s in the loop (a quarter to half of the period): look for one" + hint


def calendar_period(period_s: float | None) -> str | None:
    """Return the wave of the calendar that a period is, within 2 %: a day's or a week's; None: neither."""
    if period_s is None:
        return None
    return next((name for name, s in CALENDAR.items() if abs(period_s / s - 1) < CALENDAR_RATIO), None)


def _scaling(period_s: float, t_s: Floats, values: Floats) -> str | None:
    interval = decision_interval_s(t_s, values)
    # Sampling may blur the turns, so rare values are no levels.
    levels = [value for value, count in zip(*np.unique(values, return_counts=True)) if count > 0.02 * len(values)]
    if interval is None or len(levels) < 2:
        return None
    ticks = period_s / interval
    if len(levels) == 2 and abs(ticks - 2) < 0.2:
        low, high = sorted(levels)
        if high == low + 1 and low > 0:
            return (
                f"thresholds too close for {high:.0f} workers: taking one away multiplies each other's load by "
                f"{high:.0f}/{low:.0f}, which lands above the upper threshold (keep down x N/(N-1) < up)"
            )
        return "a two-level switch that undoes itself at every decision: widen its band or its dwell"
    if levels[0] > 0 and levels[-1] / levels[0] >= 2:
        unseen = round((ticks - 2) / 4)
        if 1 <= unseen <= MOST_UNSEEN and abs(ticks / (4 * unseen + 2) - 1) <= COUNT_RATIO:
            return (
                f"multiplicative scaling that does not count what is pending: about {unseen} unseen decision intervals "
                f"of {interval:.3g} s give {4 * unseen + 2} intervals a period, and {ticks:.1f} were seen"
            )
    return _switch(period_s, t_s, values)


def _switch(period_s: float, t_s: Floats, values: Floats) -> str | None:
    # Two groups of levels with a wide gap between them, and one change between the groups each way in a period.
    low, high = float(values.min()), float(values.max())
    up = values > (low + high) / 2
    if not 0.05 < up.mean() < 0.95:
        return None
    within = max(float(np.ptp(values[up])), float(np.ptp(values[~up])))
    changes = int(np.sum(np.diff(up.astype(int)) != 0))
    periods = float(t_s[-1] - t_s[0]) / period_s
    if within > 0.4 * (high - low) or abs(changes / (2 * periods) - 1) > COUNT_RATIO:
        return None
    stay = float(up.mean()) * period_s
    return (
        f"a switch between two levels, high for {stay:.3g} s and low for {period_s - stay:.3g} s of each period: a "
        f"threshold on a reading that is averaged over, or arrives late by, some part of {period_s:.3g} s"
    )


def _by_dead_time(period_s: float, dead_time_s: float) -> str:
    ratio = period_s / dead_time_s
    relation = f"period is {ratio:.2f} dead times: "
    if ratio < 1.8:
        return relation + "too fast for that dead time: a faster inner loop, or an echo of bunches once a transit"
    if ratio <= 4.2:
        return relation + "feedback through the dead time (2 behind a short lag, 4 behind an integrator, relays alike)"
    if ratio <= 8:
        return relation + "a relay or a slow integrator through the dead time; hysteresis and lags lengthen the period"
    return relation + "too slow for that dead time alone: a longer lag, an integrator windup, or a slower outer loop"
