"""Step times from a user's own measurements: a decode table, a fill table, and the region that they cover.

Decode rows (batch, KV tokens, seconds) and fill rows (new, cached, seconds) are scattered; each set is fitted by a
surface that never falls (`monotone`). At a fixed batch the fitted step is piecewise linear in the mean context, so
`StepTable` answers the event loop as it does for the layer model. A pass that decodes and fills takes

    fill(new, cached) + mixed_ratio x step(batch, KV),    0 <= mixed_ratio <= 1

with the ratio fitted to fill rows that had a batch; 1 without such rows: decode waits for the fill.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plant.model.kernels import Array
from plant.model.monotone import interpolation, knots_of, monotone_surface
from plant.model.step_table import StepTable

# Scattered rows are fitted over at most so many knots; a full grid keeps its own up to four times as many.
_MOST_X, _MOST_Y = 14, 7


class OutsideTable(ValueError):
    """A look-up outside what was measured; the message says where, and what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hull:
    """The convex hull of measured points (x, y), as the bounds of y at each x; `names` word its errors."""

    points: tuple[tuple[float, float], ...]
    names: tuple[str, str]

    def bounds(self, x: float) -> tuple[float, float] | None:
        """Return the least and largest y at `x`; None where x itself lies outside."""
        xs = [p[0] for p in self.points]
        if not xs[0] <= x <= xs[-1]:
            return None
        return _edge(_chain(self.points, 1.0), x), _edge(_chain(self.points, -1.0), x)

    @staticmethod
    def of(x: Array, y: Array, names: tuple[str, str]) -> Hull:
        """Return the hull of points."""
        return Hull(points=tuple(sorted(set(zip(x.tolist(), y.tolist(), strict=True)))), names=names)

    def text(self) -> str:
        """Return the measured ranges in words."""
        xs, ys = zip(*self.points, strict=True)
        return f"{self.names[0]} {min(xs):,.6g} to {max(xs):,.6g}, {self.names[1]} {min(ys):,.6g} to {max(ys):,.6g}"


def _chain(points: tuple[tuple[float, float], ...], sign: float) -> list[tuple[float, float]]:
    """Return the lower (sign 1) or upper (-1) boundary of the hull of sorted points (Andrew's monotone chain)."""
    kept: list[tuple[float, float]] = []
    for x, y in points:
        if kept and kept[-1][0] == x:
            if sign * y >= sign * kept[-1][1]:
                continue
            kept.pop()
        while len(kept) > 1 and sign * _turn(kept[-2], kept[-1], (x, y)) <= 0.0:
            kept.pop()
        kept.append((x, y))
    return kept


def _turn(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _edge(chain: list[tuple[float, float]], x: float) -> float:
    return float(np.interp(x, [p[0] for p in chain], [p[1] for p in chain]))


@dataclass(frozen=True, slots=True, kw_only=True)
class FitError:
    """How far the fitted surface is from the rows: medians of the relative error, and its largest size."""

    rows: int
    median_error_ratio: float
    worst_error_ratio: float


class MeasuredTimes:
    """Fitted seconds of one worker; implements `plant.model.times.StepTimes`.

    Parameters
    ----------
    decode : tuple of three arrays, optional
        Batch, KV tokens in all, and seconds of a step, shape (n,). None: the worker only fills.
    fills : tuple of five arrays, optional
        New tokens, cached tokens, batch and KV tokens decoded in the same pass, and seconds of the pass. None: the
        worker only decodes.
    extrapolate : bool
        Whether a look-up outside the measured region follows the outer pieces of the fit; else it raises OutsideTable.
    max_batch : int
        Largest batch that will be asked for.
    """

    __slots__ = ("_extrapolate", "_fill_bounds", "_kv_bounds", "_table", "decode_error", "decode_hull", "fill_error",
                 "fill_hull", "max_batch", "mixed_ratio")  # fmt: skip

    def __init__(
        self,
        decode: tuple[Array, Array, Array] | None,
        fills: tuple[Array, Array, Array, Array, Array] | None,
        *,
        extrapolate: bool = False,
        max_batch: int = 1,
    ) -> None:
        self._extrapolate = extrapolate
        self.decode_hull = self.fill_hull = None
        self.decode_error = self.fill_error = None
        self.mixed_ratio = 1.0
        arrays: dict[str, Array] = {}
        if decode is not None:
            batch, kv, step_s = decode
            self.decode_hull = Hull.of(batch, kv, ("batch", "kv_tokens"))
            max_batch = max(max_batch, int(batch.max()))
            arrays, self.decode_error = _decode_arrays(batch, kv, step_s, max_batch)
        if fills is not None:
            alone, together = fills[2] <= 0.0, fills[2] > 0.0
            new, cached, pass_s = fills[0][alone], fills[1][alone], fills[4][alone]
            self.fill_hull = Hull.of(new, cached, ("new_tokens", "cached_tokens"))
            more, self.fill_error = _fill_arrays(new, cached, pass_s)
            arrays |= more
        self.max_batch = max_batch
        self._table = StepTable({**_EMPTY, "decode_token_s": np.zeros(max_batch + 1), **arrays}, "measured")
        hull = self.decode_hull
        self._kv_bounds = [] if hull is None else [hull.bounds(float(b)) for b in range(max_batch + 1)]
        self._fill_bounds: dict[int, tuple[float, float] | None] = {}
        if fills is not None and decode is not None and together.any():
            self.mixed_ratio = self._fitted_ratio(*(column[together] for column in fills))

    def step_s(self, batch: int, kv_tokens: int) -> float:
        """Seconds of one decode step; zero for an empty batch."""
        self._check_decode(batch, kv_tokens)
        return self._table.step_s(batch, kv_tokens)

    def span_s(self, batch: int, kv_tokens: int, steps: int) -> float:
        """Seconds of `steps` decode steps; the first and the last must lie in the measured region."""
        self._check_decode(batch, kv_tokens)
        self._check_decode(batch, kv_tokens + batch * max(steps - 1, 0))
        return self._table.span_s(batch, kv_tokens, steps)

    def steps_within(self, batch: int, kv_tokens: int, span_s: float) -> int:
        """Whole steps that end within `span_s`."""
        self._check_decode(batch, kv_tokens)
        return self._table.steps_within(batch, kv_tokens, span_s)

    def mixed_s(self, batch: int, kv_tokens: int, new_tokens: int, cached_tokens: int) -> float:
        """Seconds of one pass that decodes `batch` sequences and fills `new_tokens` after `cached_tokens`."""
        if new_tokens <= 0:
            return self.step_s(batch, kv_tokens)
        self._check_fill(new_tokens, cached_tokens)
        fill_s = self._table.mixed_s(0, 0, new_tokens, cached_tokens)
        return fill_s + (self.mixed_ratio * self.step_s(batch, kv_tokens) if batch else 0.0)

    def _fitted_ratio(self, new: Array, cached: Array, batch: Array, kv: Array, pass_s: Array) -> float:
        """Return the share of a decode step that a pass with a fill adds to it: least squares of relative errors."""
        rows = zip(new.tolist(), cached.tolist(), batch.tolist(), kv.tolist(), strict=True)
        parts = [(self._table.mixed_s(0, 0, n, c), self._table.step_s(round(b), k)) for n, c, b, k in rows]
        fill_s, step_s = np.asarray(parts).T
        x, y = step_s / pass_s, (pass_s - fill_s) / pass_s
        return float(np.clip((x @ y) / max(float(x @ x), 1e-300), 0.0, 1.0))

    def _check_decode(self, batch: int, kv_tokens: int) -> None:
        if self._extrapolate or batch == 0:
            return
        bounds = self._kv_bounds[batch] if batch < len(self._kv_bounds) else None
        if bounds is None or not bounds[0] * (1.0 - 1e-9) <= kv_tokens <= bounds[1] * (1.0 + 1e-9):
            raise OutsideTable(_outside(self.decode_hull, f"a step of batch {batch} at {kv_tokens:,.0f} KV tokens"))

    def _check_fill(self, new_tokens: int, cached_tokens: int) -> None:
        if self._extrapolate:
            return
        if new_tokens not in self._fill_bounds:
            self._fill_bounds[new_tokens] = None if self.fill_hull is None else self.fill_hull.bounds(new_tokens)
        bounds = self._fill_bounds[new_tokens]
        if bounds is None or not bounds[0] <= cached_tokens <= bounds[1] * (1.0 + 1e-9):
            asked = f"a fill of {new_tokens:,} new tokens after {cached_tokens:,} cached ones"
            raise OutsideTable(_outside(self.fill_hull, asked))


def _outside(hull: Hull | None, asked: str) -> str:
    measured = "no such rows" if hull is None else hull.text()
    return f'{asked} lies outside the measured region ({measured}); measure more, or set outside = "extrapolate"'


# What a table without decode, or without fill rows, holds in their place; the role of the worker never asks for it.
_EMPTY: dict[str, Array] = {
    "knots": np.zeros(0),
    "base": np.zeros((1, 1)),
    "slope": np.zeros((1, 1)),
    "decode_token_s": np.zeros(1),
    "rank_batch": np.zeros(1),
    "new": np.asarray([0.0, 1.0]),
    "cached": np.asarray([0.0, 1.0]),
    "fill": np.zeros((2, 2)),
    "tokens": np.asarray([0.0, 1.0]),
    "token_s": np.zeros(2),
    "dp": np.asarray(1.0),
    "floor_s": np.asarray(0.0),
    "error_ratio": np.asarray(0.0),
}


def _surface(
    x: Array, y: Array, seconds: Array, first_x: float, first_y: float
) -> tuple[Array, Array, Array, FitError]:
    """Return knots along both axes (`first_*` among them), the fitted surface, and its error."""
    grid = len(np.unique(x)) * len(np.unique(y)) <= 1.5 * len(x)
    more = 4 if grid and len(x) <= 16 * _MOST_X * _MOST_Y else 1
    xs = np.union1d([first_x], knots_of(x, more * _MOST_X))
    ys = np.union1d([first_y], knots_of(y, more * _MOST_Y))
    surface = monotone_surface(x, y, seconds, xs, ys)
    error = np.abs(interpolation(x, y, xs, ys) @ surface.ravel() / seconds - 1.0)
    return (
        xs,
        ys,
        surface,
        FitError(rows=len(x), median_error_ratio=float(np.median(error)), worst_error_ratio=float(error.max())),
    )


def _decode_arrays(batch: Array, kv: Array, step_s: Array, max_batch: int) -> tuple[dict[str, Array], FitError]:
    """Return a line over the KV tokens for every batch and every piece of the mean context, as `StepTable` takes."""
    xs, contexts, surface, error = _surface(batch, kv / batch, step_s, 1.0, 0.0)
    if len(contexts) == 1:
        contexts, surface = np.append(contexts, contexts + 1.0), np.repeat(surface, 2, axis=1)
    every = np.maximum(np.arange(max_batch + 1, dtype=float), 1.0)
    values = (interpolation(every, np.zeros_like(every), xs, np.zeros(1)) @ surface).T
    slope = np.diff(values, axis=0) / np.diff(contexts)[:, None]
    base = values[:-1] - slope * contexts[:-1, None]
    return {"knots": contexts[1:-1], "base": base, "slope": slope / every}, error


def _fill_arrays(new: Array, cached: Array, pass_s: Array) -> tuple[dict[str, Array], FitError]:
    """Return the fitted grid of fill seconds; a single cached length is taken to cost the same at any."""
    xs, ys, surface, error = _surface(new, cached, pass_s, 1.0, 0.0)
    if len(ys) == 1:
        ys, surface = np.append(ys, ys + 1.0), np.repeat(surface, 2, axis=1)
    if len(xs) == 1:
        xs, surface = np.append(xs, xs + 1.0), np.repeat(surface, 2, axis=0)
    return {"new": xs, "cached": ys, "fill": surface}, error
