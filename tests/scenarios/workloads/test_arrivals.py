"""Arrival processes against their definitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile

import numpy as np
import pytest

from scenarios.errors import UserError
from scenarios.workloads import arrivals
from scenarios.workloads.arrivals import Segment, times, unit_gaps


def first(profile: Iterator[Segment], cv: float = 1.0, n: int = 20_000, stream: int = 5) -> np.ndarray:
    return np.fromiter(islice(times(profile, unit_gaps(stream, cv)), n), dtype=np.float64)


@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0, 3.0])
def test_gaps_have_the_rate_and_the_coefficient_of_variation_that_were_asked_for(cv: float) -> None:
    gaps = np.diff(first(arrivals.constant(4.0), cv))
    assert gaps.mean() == pytest.approx(0.25, rel=0.05)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.05, abs=1e-9)


def test_a_poisson_process_has_dispersion_one_at_every_scale() -> None:
    at = first(arrivals.constant(4.0))
    for width in (1.0, 10.0):
        counts = np.bincount((at / width).astype(int))[:-1]
        assert counts.var() / counts.mean() == pytest.approx(1.0, abs=0.15)


def test_arrivals_lie_on_the_integral_of_the_rate() -> None:
    points = [(0.0, 1.0), (100.0, 9.0), (150.0, 0.0), (200.0, 0.0), (300.0, 2.0)]
    at = np.fromiter(takewhile(lambda t: t < 300.0, times(arrivals.ramp(points), unit_gaps(1, 0.0))), dtype=np.float64)
    knots, rates = np.array([p[0] for p in points]), np.array([p[1] for p in points])
    fine = np.linspace(0.0, 300.0, 300_001)
    integral = np.concatenate([[0.0], np.cumsum(np.interp(fine[:-1] + 0.0005, knots, rates) * 0.001)])
    np.testing.assert_allclose(np.interp(at, fine, integral), np.arange(1, len(at) + 1), atol=2e-3)


def test_a_day_repeats_and_peaks_when_it_should() -> None:
    profile = arrivals.diurnal(0.2, swing_ratio=0.9, period_s=8_640.0, peak_s=4_680.0)
    at = first(profile, n=17_280)
    assert at[-1] == pytest.approx(10 * 8_640.0, rel=0.03)
    counts, edges = np.histogram(at % 8_640.0, bins=12)
    assert edges[int(np.argmax(counts))] <= 4_680.0 <= edges[int(np.argmax(counts)) + 1]


def test_bursts_and_modulated_rates_are_overdispersed_as_their_rates_say() -> None:
    square = np.diff(first(arrivals.bursts(0.5, 20.0, every_s=60.0, length_s=6.0)))
    assert square.std() / square.mean() > 1.5
    at = first(arrivals.mmpp([1.0, 9.0], [50.0, 50.0], stream=8), n=40_000)
    assert len(at) / at[-1] == pytest.approx(5.0, rel=0.1)
    counts = np.bincount((at / 10.0).astype(int))[:-1]
    # Var = mean + (difference of rates / 2)^2 T^2 g(T / dwell), g near 0.88 for T = 10 s and two dwells of 50 s.
    assert counts.var() / counts.mean() == pytest.approx(1.0 + 16.0 * 100.0 * 0.88 / 50.0, rel=0.2)


def test_a_process_is_the_same_whoever_listens() -> None:
    assert first(arrivals.constant(1.0), 2.0, 50).tolist() == first(arrivals.constant(1.0), 2.0, 5_000).tolist()[:50]


@pytest.mark.parametrize(
    "make",
    [
        lambda: arrivals.constant(0.0),
        lambda: arrivals.ramp([(0.0, 1.0), (0.0, 2.0)]),
        lambda: arrivals.ramp([(0.0, 0.0)]),
        lambda: arrivals.diurnal(1.0, swing_ratio=1.5),
        lambda: arrivals.bursts(1.0, 2.0, every_s=5.0, length_s=6.0),
        lambda: next(arrivals.mmpp([1.0], [1.0, 2.0], stream=1)),
        lambda: next(arrivals.unit_gaps(1, -1.0)),
    ],
)
def test_impossible_processes_are_refused(make: object) -> None:
    with pytest.raises(UserError):
        make()  # type: ignore[operator]  # each is a thunk
