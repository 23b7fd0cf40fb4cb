"""Step times looked up in tables: the fast implementation of `StepTimes` that the event loop calls.

At a fixed batch a decode step is piecewise linear in the mean context, so sums of steps and their inverse are closed
forms within each piece. A fill chunk is bilinear between knots of (new, cached) tokens. `tables` builds the arrays.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from plant.model.kernels import Array
from plant.model.times import approximate_steps, steps_within


class StepTable:
    """Looked-up seconds of one worker of one configuration; implements `plant.model.times.StepTimes`.

    `batch` counts the worker's sequences over all its ranks and micro-batches, `kv_tokens` the positions that they
    hold in all. `max_batch` is the largest tabulated batch; a larger one raises IndexError.
    """

    __slots__ = (
        "_base",
        "_cached",
        "_core",
        "_dp",
        "_fill",
        "_floor_s",
        "_knots",
        "_new",
        "_rank",
        "_slope",
        "_token",
        "_token_s",
        "digest",
        "error_ratio",
        "max_batch",
    )

    def __init__(self, arrays: dict[str, Array], digest: str) -> None:
        self.digest = digest
        self._knots: list[float] = arrays["knots"].tolist()
        self._base: list[list[float]] = arrays["base"].tolist()
        self._slope: list[list[float]] = arrays["slope"].tolist()
        self._core: list[float] = arrays["decode_token_s"].tolist()
        self._rank: list[int] = arrays["rank_batch"].astype(int).tolist()
        new, cached = arrays["new"].tolist(), arrays["cached"].tolist()
        # Inner knots only: what lies beyond the outer ones belongs to the outer cells.
        self._new: list[float] = new[1:-1]
        self._cached: list[float] = cached[1:-1]
        self._fill = _cells(new, cached, arrays["fill"].tolist())
        self._token: list[float] = arrays["tokens"].tolist()
        self._token_s: list[float] = arrays["token_s"].tolist()
        self._dp = float(arrays["dp"])
        self._floor_s = float(arrays["floor_s"])
        self.error_ratio = float(arrays["error_ratio"])
        self.max_batch = len(self._core) - 1

    def step_s(self, batch: int, kv_tokens: int) -> float:
        """Seconds of one decode step; zero for an empty batch."""
        if batch == 0:
            return 0.0
        knots = self._knots
        j = bisect_right(knots, kv_tokens / batch) if knots else 0
        return self._base[j][batch] + self._slope[j][batch] * kv_tokens

    def span_s(self, batch: int, kv_tokens: int, steps: int) -> float:
        """Seconds of `steps` decode steps: one sum of a line per piece that the growing context crosses."""
        if batch == 0 or steps <= 0:
            return 0.0
        knots = self._knots
        if not knots:
            slope = self._slope[0][batch]
            first = self._base[0][batch] + slope * kv_tokens
            return steps * first + slope * batch * (steps * (steps - 1) * 0.5)
        total, done = 0.0, 0
        while done < steps:
            held = kv_tokens + batch * done
            j = bisect_right(knots, held / batch)
            count = steps - done
            if j < len(knots):
                count = min(count, _steps_below(knots[j], held, batch))
            slope = self._slope[j][batch]
            total += count * (self._base[j][batch] + slope * held) + slope * batch * (count * (count - 1) * 0.5)
            done += count
        return total

    def steps_within(self, batch: int, kv_tokens: int, span_s: float) -> int:
        """Whole steps that end within `span_s`: a quadratic's root in the piece where it ends, settled by `span_s`."""
        if batch == 0:
            return 0
        if not self._knots:
            slope = self._slope[0][batch]
            return steps_within(self._base[0][batch] + slope * kv_tokens, slope * batch, span_s)
        limit = span_s * (1.0 + 1e-12)
        if self.step_s(batch, kv_tokens) > limit:
            return 0
        knots, done, spent = self._knots, 0, 0.0
        while True:
            held = kv_tokens + batch * done
            j = bisect_right(knots, held / batch)
            slope = self._slope[j][batch]
            first = self._base[j][batch] + slope * held
            count = approximate_steps(first, slope * batch, limit - spent)
            if j >= len(knots):
                break
            piece = _steps_below(knots[j], held, batch)
            if count < piece:
                break
            spent += piece * first + slope * batch * (piece * (piece - 1) * 0.5)
            done += piece
        done += count
        while self.span_s(batch, kv_tokens, done + 1) <= limit:
            done += 1
        while done > 0 and self.span_s(batch, kv_tokens, done) > limit:
            done -= 1
        return done

    def mixed_s(self, batch: int, kv_tokens: int, new_tokens: int, cached_tokens: int) -> float:
        """Seconds of one pass that decodes `batch` sequences and fills `new_tokens` after `cached_tokens`.

        The chunk is spread evenly over the data-parallel ranks. A decoding batch adds its rows to the products of the
        pass and its own reading of context.
        """
        if new_tokens <= 0:
            return self.step_s(batch, kv_tokens)
        a, b, c, d = self._fill[bisect_right(self._new, new_tokens)][bisect_right(self._cached, cached_tokens)]
        seconds = a + b * new_tokens + (c + d * new_tokens) * cached_tokens
        if batch == 0:
            return seconds if seconds > self._floor_s else self._floor_s
        alone = new_tokens / self._dp
        joint = _line(self._token, self._token_s, alone + self._rank[batch]) - _line(self._token, self._token_s, alone)
        reading = max(self.step_s(batch, kv_tokens) - self._core[batch], 0.0)
        return max(seconds + joint + reading, self._floor_s)


def _steps_below(knot: float, held: float, batch: int) -> int:
    """Return how many steps start below the mean context `knot`; one at least, so that a sum moves on."""
    return max(math.ceil(knot - held / batch - 1e-9), 1)


def _line(xs: Sequence[float], ys: Sequence[float], x: float) -> float:
    j = min(max(bisect_right(xs, x), 1), len(xs) - 1)
    x0, y0 = xs[j - 1], ys[j - 1]
    return y0 + (ys[j] - y0) * (x - x0) / (xs[j] - x0)


def _cells(
    xs: Sequence[float], ys: Sequence[float], table: Sequence[Sequence[float]]
) -> list[list[tuple[float, float, float, float]]]:
    """Return (a, b, c, d) of a + b x + c y + d x y for every cell between the knots: the bilinear form, multiplied out.

    A lookup is then two bisections and one polynomial, half a microsecond in all.
    """
    cells = []
    for i in range(len(xs) - 1):
        row = []
        for j in range(len(ys) - 1):
            x0, y0, width, height = xs[i], ys[j], xs[i + 1] - xs[i], ys[j + 1] - ys[j]
            corner = table[i][j]
            dx, dy = (table[i + 1][j] - corner) / width, (table[i][j + 1] - corner) / height
            d = ((table[i + 1][j + 1] - table[i][j + 1]) / width - dx) / height
            b, c = dx - d * y0, dy - d * x0
            row.append((corner - dx * x0 - dy * y0 + d * x0 * y0, b, c, d))
        cells.append(row)
    return cells
