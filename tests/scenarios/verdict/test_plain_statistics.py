"""What the verdict computes with numpy alone is what scipy computes, whose import would cost more than a short run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import signal, stats

from scenarios.verdict import acf, shape
from scenarios.verdict.cycle import SURROGATE_SEED, null_heights

VALUES = st.floats(-1e6, 1e6, allow_subnormal=False)
SERIES = arrays.arrays(float, st.integers(2, 400), elements=VALUES)


@given(SERIES)
def test_the_line_of_least_squares(x: np.ndarray) -> None:
    assert acf.without_line(x) == pytest.approx(signal.detrend(x), abs=1e-9 * max(1.0, float(np.abs(x).max())))


@given(arrays.arrays(float, st.integers(1, 200), elements=st.integers(-5, 5)))
def test_ranks_share_their_mean_where_values_are_equal(x: np.ndarray) -> None:
    assert np.array_equal(acf.ranks(x), stats.rankdata(x))


@pytest.mark.parametrize("samples", [2, 3, 100, 255, 256, 1000, 4001])
def test_the_spectrum_is_welchs(samples: int) -> None:
    x = np.random.default_rng(samples).standard_normal(samples).cumsum()
    hz, power = shape.spectrum(x, 0.25)
    segment = min(samples, max(256, samples // 4))
    expected_hz, expected = signal.welch(signal.detrend(x), 4.0, nperseg=segment)
    assert hz == pytest.approx(expected_hz)
    assert power == pytest.approx(expected, rel=1e-9, abs=1e-12 * float(np.ptp(x)) ** 2)


def test_surrogates_are_an_autoregression_of_their_noise() -> None:
    n, redness = 600, 12
    phi = 1 - np.exp(-0.25 * redness)
    noise = np.random.default_rng([SURROGATE_SEED, n, redness])
    rows = noise.standard_normal((50, n), dtype=np.float32).astype(float)
    rows[:, 0] /= np.sqrt(1 - phi**2)
    red = signal.lfilter([1.0], [1.0, -phi], rows, axis=1)
    heights, _ = acf.first_peaks(acf.autocorrelation(acf.detrend(red, False)))
    assert null_heights(n, redness, False, 50) == pytest.approx(np.sort(heights), abs=1e-9)
