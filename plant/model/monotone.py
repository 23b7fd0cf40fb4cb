"""Fit a surface that never falls to scattered measurements, over a grid of knots.

The surface is bilinear between knots. Its values z minimise

    sum of ((A z)_i / s_i - 1)^2 + (0.001)^2 sum of (second differences of z / mean s)^2

subject to z rising along both axes and z_00 >= 0.01 min(s), where row i of A interpolates measurement i. Relative
errors weigh fast and slow steps alike; second differences fill knots that no measurement is near with straight lines.
The problem is a least distance program, solved by non-negative least squares (Lawson and Hanson, "Solving Least
Squares Problems", chapter 23).
"""

from __future__ import annotations

import numpy as np

from plant.model.kernels import Array

_SMOOTH = 1e-3
_RIDGE = 1e-6
_LEAST_RATIO = 0.01


def knots_of(values: Array, most: int) -> Array:
    """Return the distinct values, or `most` of them at equal steps of rank where there are more."""
    distinct = np.unique(values)
    if len(distinct) <= most:
        return distinct
    return np.asarray(np.unique(distinct[np.linspace(0, len(distinct) - 1, most).round().astype(int)]))


def interpolation(x: Array, y: Array, xs: Array, ys: Array) -> Array:
    """Return the matrix, shape (n, len(xs) len(ys)), that takes values at the knots to the points (x, y)."""
    rows = np.zeros((len(x), len(xs), len(ys)))
    i, u = _cell(x, xs)
    j, v = _cell(y, ys)
    n = np.arange(len(x))
    right, up = np.minimum(i + 1, len(xs) - 1), np.minimum(j + 1, len(ys) - 1)
    for a, p in ((i, 1.0 - u), (right, u)):
        for b, q in ((j, 1.0 - v), (up, v)):
            np.add.at(rows, (n, a, b), p * q)
    return rows.reshape(len(x), -1)


def _cell(x: Array, knots: Array) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], Array]:
    """Return the cell of each x, and where in it x lies; beyond the outer knots the outer cells go on."""
    if len(knots) == 1:
        return np.zeros(len(x), dtype=np.intp), np.zeros(len(x))
    at = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    return at, (x - knots[at]) / (knots[at + 1] - knots[at])


def monotone_surface(x: Array, y: Array, seconds: Array, xs: Array, ys: Array) -> Array:
    """Return the surface at the knots, shape (len(xs), len(ys)).

    Parameters
    ----------
    x, y, seconds : array, shape (n,)
        Measurements; seconds > 0.
    xs, ys : array
        Knots, rising.
    """
    nodes = np.eye(len(xs) * len(ys)).reshape(len(xs), len(ys), -1)
    scale = float(np.mean(seconds))
    fitted = interpolation(x, y, xs, ys) / seconds[:, None]
    smooth = [_bend(nodes, xs), _bend(nodes.swapaxes(0, 1), ys)]
    matrix = np.vstack([fitted, *(_SMOOTH / scale * part for part in smooth), _RIDGE / scale * np.eye(nodes.shape[-1])])
    wanted = np.concatenate([np.ones(len(seconds)), np.zeros(len(matrix) - len(seconds))])
    rising = [np.diff(nodes, axis=axis).reshape(-1, nodes.shape[-1]) for axis in (0, 1)]
    limits = np.vstack([*rising, nodes[0, 0][None, :]])
    least = np.zeros(len(limits))
    least[-1] = _LEAST_RATIO * float(np.min(seconds))
    surface = _least_squares_above(matrix, wanted, limits, least).reshape(len(xs), len(ys))
    # What rounding leaves of a fall, a few parts in a million, goes too.
    surface = np.maximum.accumulate(np.maximum.accumulate(surface, axis=0), axis=1)
    return np.asarray(np.maximum(surface, least[-1]))


def _bend(nodes: Array, knots: Array) -> Array:
    """Return second differences along the first axis, at knots rescaled to the unit interval."""
    if len(knots) < 3:
        return np.zeros((0, nodes.shape[-1]))
    width = np.diff(knots) / (knots[-1] - knots[0])
    slopes = np.diff(nodes, axis=0) / width[:, None, None]
    return np.asarray(np.diff(slopes, axis=0) * np.minimum(width[1:], width[:-1])[:, None, None]).reshape(
        -1, nodes.shape[-1]
    )


def _least_squares_above(matrix: Array, wanted: Array, limits: Array, least: Array) -> Array:
    """Return z that minimises |matrix z - wanted| with limits z >= least; `matrix` has full column rank."""
    q, r = np.linalg.qr(matrix)
    free = np.linalg.solve(r, q.T @ wanted)
    # With z = free + R^-1 u this is the shortest u for which G u >= h.
    g = np.linalg.solve(r.T, limits.T).T
    h = least - limits @ free
    if np.all(h <= 0.0):
        return np.asarray(free)
    size = np.linalg.norm(g, axis=1)
    g, h = g / size[:, None], h / size
    height = max(float(np.abs(h).max()), 1e-300)
    stacked = np.vstack([g.T, h / height])
    from scipy.optimize import nnls  # slow to import, and few fits break a limit

    multipliers, _ = nnls(stacked, np.append(np.zeros(len(r)), 1.0), maxiter=30 * len(limits))
    rest = stacked @ multipliers
    rest[-1] -= 1.0
    u = -rest[:-1] / rest[-1] * height
    return np.asarray(free + np.linalg.solve(r, u))
