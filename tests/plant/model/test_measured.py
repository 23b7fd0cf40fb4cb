"""Fitted step times: they never fall, meet what they were fitted to, and say where they end."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.model.kernels import Array
from plant.model.measured import Hull, MeasuredTimes, OutsideTable
from plant.model.monotone import interpolation, knots_of, monotone_surface
from plant.model.times import LinearTimes, StepTimes

TRUE = LinearTimes(base_s=8e-3, per_sequence_s=5e-5, per_kv_token_s=2e-9, per_new_token_s=1e-5, per_cached_token_s=1e-8)


def decode_rows(noise_ratio: float = 0.0) -> tuple[Array, Array, Array]:
    pairs = itertools.product((1, 2, 4, 8, 16, 32, 64), (500, 4000, 16_000, 64_000))
    batch, context = np.asarray(list(pairs), dtype=float).T
    seconds = [TRUE.step_s(int(b), int(b * c)) for b, c in zip(batch, context, strict=True)]
    noise = np.random.default_rng(1).normal(1.0, noise_ratio, len(batch))
    return batch, batch * context, np.asarray(seconds) * noise


def fill_rows() -> tuple[Array, Array, Array, Array, Array]:
    pairs = list(itertools.product((1, 64, 512, 2048, 8192), (0, 8192, 65_536), ((0, 0), (32, 300_000))))
    rows = [
        (n, c, b, kv, TRUE.mixed_s(0, 0, n, c) + 0.4 * (TRUE.step_s(b, kv) if b else 0.0)) for n, c, (b, kv) in pairs
    ]
    columns = np.asarray(rows, dtype=float).T
    return columns[0], columns[1], columns[2], columns[3], columns[4]


@functools.cache
def fitted(noise_ratio: float = 0.0, extrapolate: bool = False) -> MeasuredTimes:
    return MeasuredTimes(decode_rows(noise_ratio), fill_rows(), extrapolate=extrapolate, max_batch=128)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(3, 40))
def test_a_fitted_surface_never_falls_whatever_the_rows(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(1, 9, rows).astype(float), rng.integers(0, 9, rows).astype(float)
    seconds = rng.uniform(0.001, 1.0, rows)
    z = monotone_surface(x, y, seconds, knots_of(x, 5), knots_of(y, 5))
    assert np.diff(z, axis=0).min(initial=0.0) >= -1e-9
    assert np.diff(z, axis=1).min(initial=0.0) >= -1e-9
    assert z.min() > 0.0


def test_a_grid_that_rises_is_met_at_every_row() -> None:
    batch, kv, seconds = decode_rows()
    got = [fitted().step_s(int(b), int(k)) for b, k in zip(batch, kv, strict=True)]
    assert got == pytest.approx(seconds, rel=1e-3)
    assert fitted().decode_error is not None
    assert fitted().decode_error.worst_error_ratio < 1e-3


def test_noise_of_five_percent_leaves_two_percent_on_average() -> None:
    errors = [
        abs(fitted(0.05).step_s(b, b * c) / TRUE.step_s(b, b * c) - 1.0)
        for b, c in itertools.product((1, 3, 10, 30, 60), (1000, 10_000, 40_000))
    ]
    assert np.mean(errors) < 0.03


@settings(deadline=None)
@given(st.integers(1, 64), st.integers(500, 30_000), st.integers(1, 900))
def test_spans_are_sums_of_steps_and_steps_within_inverts_them(batch: int, context: int, steps: int) -> None:
    times: StepTimes = fitted(0.05)
    kv = batch * context
    span_s = times.span_s(batch, kv, steps)
    assert span_s == pytest.approx(sum(times.step_s(batch, kv + i * batch) for i in range(steps)), rel=1e-9)
    assert times.steps_within(batch, kv, span_s) == steps


@settings(deadline=None)
@given(st.integers(1, 63), st.integers(500, 60_000), st.integers(0, 4000))
def test_more_work_is_never_faster(batch: int, context: int, more: int) -> None:
    times = fitted(0.05)
    assert times.step_s(batch, batch * (context + more)) >= times.step_s(batch, batch * context) * (1 - 1e-9)
    assert times.step_s(batch + 1, (batch + 1) * context) >= times.step_s(batch, batch * context) * (1 - 1e-9)


def test_a_fill_is_what_was_measured_and_the_share_of_a_step_beside_it_is_found() -> None:
    new, cached, batch, kv, seconds = fill_rows()
    assert fitted().mixed_ratio == pytest.approx(0.4, abs=0.01)
    for row in range(0, len(new), 3):
        got = fitted().mixed_s(int(batch[row]), int(kv[row]), int(new[row]), int(cached[row]))
        assert got == pytest.approx(seconds[row], rel=0.01)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda t: t.step_s(65, 65 * 1000), "a step of batch 65 at 65,000 KV tokens lies outside"),
        (lambda t: t.step_s(8, 8 * 70_000), "batch 1 to 64, kv_tokens 500 to 4.096e+06"),
        (lambda t: t.step_s(8, 8 * 100), "measure more, or set outside"),
        (lambda t: t.span_s(8, 8 * 60_000, 10_000), "a step of batch 8 at"),
        (lambda t: t.mixed_s(0, 0, 10_000, 0), "a fill of 10,000 new tokens after 0 cached ones lies outside"),
        (lambda t: t.mixed_s(0, 0, 100, 70_000), "cached_tokens 0 to 65,536"),
    ],
)
def test_outside_the_measured_region_is_an_error_that_names_it(ask: object, words: str) -> None:
    with pytest.raises(OutsideTable, match="outside") as caught:
        ask(fitted())  # type: ignore[operator]  # a function of one argument
    assert words in str(caught.value)


def test_extrapolation_where_it_is_asked_for_follows_the_outer_pieces() -> None:
    times = fitted(extrapolate=True)
    assert times.step_s(128, 128 * 80_000) == pytest.approx(TRUE.step_s(128, 128 * 80_000), rel=0.02)
    assert times.mixed_s(0, 0, 10_000, 0) == pytest.approx(TRUE.mixed_s(0, 0, 10_000, 0), rel=0.02)


def test_a_hull_of_a_triangle_bounds_what_lies_between_its_corners() -> None:
    hull = Hull.of(np.asarray([0.0, 2.0, 2.0]), np.asarray([0.0, 0.0, 4.0]), ("x", "y"))
    assert hull.bounds(1.0) == (0.0, 2.0)
    assert hull.bounds(2.5) is None


def test_interpolation_reproduces_what_is_bilinear() -> None:
    x, y = np.asarray([0.5, 3.0, 5.0]), np.asarray([1.0, 2.0, 9.0])
    xs, ys = np.asarray([0.0, 2.0, 4.0]), np.asarray([0.0, 3.0])
    nodes = (1.0 + xs[:, None]) * (2.0 + ys[None, :])
    assert interpolation(x, y, xs, ys) @ nodes.ravel() == pytest.approx((1.0 + x) * (2.0 + y))
