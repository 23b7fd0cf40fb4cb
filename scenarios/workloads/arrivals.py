"""Arrival times of sessions or requests, from a rate profile over time and the regularity of the gaps.

A profile is an endless sequence of segments (seconds, rate at its start, rate at its end), the rate linear in between.
Unit gaps of mean 1 are laid on the profile's integral: with exponential gaps (cv = 1) this is the Poisson process of
that rate exactly; Gamma gaps of another coefficient of variation make it more regular (cv < 1) or bunched (cv > 1).

    arrival n at t_n, where  integral_0^{t_n} rate dt = gap_1 + ... + gap_n

Rates are per second. Every draw is a counter hash of (stream, number), so a process does not depend on its consumer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count, cycle, pairwise, repeat

import numpy as np
from scipy.special import gammaincinv

from orchestrator.rng import uniform, uniform_block
from scenarios.errors import UserError

Segment = tuple[float, float, float]
BLOCK = 1024


def constant(rate_per_s: float) -> Iterator[Segment]:
    """Return a profile of one constant rate."""
    _positive(rate_per_s, "rate_per_s")
    return repeat((math.inf, rate_per_s, rate_per_s))


def ramp(points: Sequence[tuple[float, float]], *, period_s: float | None = None) -> Iterator[Segment]:
    """Return a profile through (time_s, rate_per_s) points, straight between them; the last rate continues.

    With `period_s` the points describe one period (a day) and repeat: the rate runs straight from the last point back
    to the first.
    """
    if not points or any(b[0] <= a[0] for a, b in pairwise(points)) or min(r for _, r in points) < 0.0:
        raise UserError("a ramp needs points of rising time_s with rates >= 0")
    if max(r for _, r in points) <= 0.0:
        raise UserError("a ramp whose rates are all 0 has no arrivals")
    times = [t for t, _ in points]
    rates = [r for _, r in points]
    if period_s is None:
        lead = [(times[0], rates[0], rates[0])] if times[0] > 0.0 else []
        inner = [(times[k + 1] - t, rates[k], rates[k + 1]) for k, t in enumerate(times[:-1])]
        return iter([*lead, *inner, (math.inf, rates[-1], rates[-1])])
    if times[0] != 0.0 or times[-1] >= period_s:
        raise UserError("a periodic ramp starts at 0 s and its last point lies before period_s")
    ends = [*times[1:], period_s]
    nexts = [*rates[1:], rates[0]]
    return cycle([(ends[k] - t, rates[k], nexts[k]) for k, t in enumerate(times)])


def diurnal(
    mean_per_s: float, *, swing_ratio: float, period_s: float = 86_400.0, peak_s: float = 50_400.0
) -> Iterator[Segment]:
    """Return rate = mean (1 + swing cos(2 pi (t - peak) / period)) in 96 straight pieces a period."""
    _positive(mean_per_s, "mean_per_s")
    if not 0.0 <= swing_ratio <= 1.0:
        raise UserError(f"swing_ratio = {swing_ratio}; a share from 0 to 1 was expected")
    times = np.arange(96) * (period_s / 96)
    rates = mean_per_s * (1.0 + swing_ratio * np.cos(2.0 * np.pi * (times - peak_s) / period_s))
    return ramp([(float(t), max(0.0, float(r))) for t, r in zip(times, rates)], period_s=period_s)


def bursts(base_per_s: float, burst_per_s: float, *, every_s: float, length_s: float) -> Iterator[Segment]:
    """Return a base rate with a higher one for `length_s` at the start of every `every_s`."""
    if not 0.0 < length_s < every_s:
        raise UserError(f"a burst of {length_s} s does not fit into a period of {every_s} s")
    _positive(burst_per_s, "burst_per_s")
    return cycle([(length_s, burst_per_s, burst_per_s), (every_s - length_s, base_per_s, base_per_s)])


def mmpp(rates_per_s: Sequence[float], dwells_s: Sequence[float], *, stream: int) -> Iterator[Segment]:
    """Return a Markov-modulated profile: each state holds for an exponential time, then the next in turn follows."""
    if len(rates_per_s) != len(dwells_s) or min(dwells_s) <= 0.0 or max(rates_per_s) <= 0.0 or min(rates_per_s) < 0.0:
        raise UserError("mmpp needs as many dwells_s (> 0) as rates_per_s (>= 0, not all 0)")
    for n in count():
        state = n % len(rates_per_s)
        rate = rates_per_s[state]
        yield (-dwells_s[state] * math.log(uniform(stream, n)), rate, rate)


def unit_gaps(stream: int, cv: float = 1.0) -> Iterator[float]:
    """Yield gaps of mean 1 and this coefficient of variation: exponential at 1, Gamma otherwise, equal at 0."""
    if cv < 0.0:
        raise UserError(f"cv = {cv}; at least 0 was expected")
    for first in count(0, BLOCK):
        draws = np.array(uniform_block(stream, first, BLOCK))
        if cv == 0.0:
            yield from repeat(1.0, BLOCK)
        elif cv == 1.0:
            yield from (-np.log(draws)).tolist()
        else:
            shape = 1.0 / cv**2
            yield from (gammaincinv(shape, draws) / shape).tolist()


def times(profile: Iterator[Segment], gaps: Iterator[float]) -> Iterator[float]:
    """Yield arrival times in seconds: the gaps laid on the profile's integral."""
    span_s, rate, end = next(profile)
    start_s = into_s = 0.0
    for gap in gaps:
        need = gap
        while True:
            slope = 0.0 if math.isinf(span_s) else (end - rate) / span_s
            here = rate + slope * into_s
            rest_s = span_s - into_s
            area = math.inf if math.isinf(rest_s) else (here + end) * 0.5 * rest_s
            if need <= area and (here > 0.0 or slope > 0.0):
                into_s += _advance(here, slope, need)
                break
            need -= area
            start_s += span_s
            span_s, rate, end = next(profile)
            into_s = 0.0
        yield start_s + into_s


def _advance(rate: float, slope: float, area: float) -> float:
    """Return x with rate x + slope x^2 / 2 = area, in the form that does not cancel."""
    return 2.0 * area / (rate + math.sqrt(max(0.0, rate * rate + 2.0 * slope * area)))


def _positive(value: float, name: str) -> None:
    if not value > 0.0:
        raise UserError(f"{name} = {value}; more than 0 was expected")
