"""From a placement to `StepTimes`: everything the event loop asks for, evaluated once and then looked up.

At a fixed batch a decode step is piecewise linear in the mean context, with one piece where attention neither
saturates (window, top-k) nor trades places with the transfers that hide it. The pieces are placed until the error at
checked points is below `STEP_ERROR_RATIO`; `StepTable.error_ratio` states what was reached. A fill chunk is bilinear
between knots of (new, cached). The busiest data-parallel rank sets the pace of its group (E3.4).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from plant.model.hardware import Engine, Hardware
from plant.model.kernels import Array
from plant.model.layer import Setting, attention_operations, token_operations
from plant.model.memory import largest_batch
from plant.model.moe import Model, Precision
from plant.model.placement import Placement, check_placement
from plant.model.regimes import decode, run_pass, setting_of, stage_excess_ratio
from plant.model.table_cache import cached_arrays, digest_of

STEP_ERROR_RATIO = 1e-3
_MAX_KNOTS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Multi-token prediction: positions verified beyond one, and output tokens per pass on average."""

    draft_tokens: int = 0
    accepted_tokens: float = 1.0


class StepTable:
    """Looked-up seconds of one worker of one configuration; implements `plant.times.StepTimes`.

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
        limit = span_s * (1.0 + 1e-12)
        if batch == 0:
            return 0
        if not self._knots:
            slope = self._slope[0][batch]
            growth = slope * batch
            first = self._base[0][batch] + slope * kv_tokens
            n = _root(first, growth, limit)
            while (n + 1) * first + growth * ((n + 1) * n * 0.5) <= limit:
                n += 1
            while n > 0 and n * first + growth * (n * (n - 1) * 0.5) > limit:
                n -= 1
            return n
        if self.step_s(batch, kv_tokens) > limit:
            return 0
        knots, done, spent = self._knots, 0, 0.0
        while True:
            held = kv_tokens + batch * done
            j = bisect_right(knots, held / batch)
            slope = self._slope[j][batch]
            first = self._base[j][batch] + slope * held
            count = _root(first, slope * batch, limit - spent)
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


def _root(first_s: float, growth_s: float, limit_s: float) -> int:
    """Return the largest n with n first + growth n (n - 1) / 2 <= limit, up to rounding."""
    if limit_s < first_s:
        return 0
    if growth_s <= 0.0:
        return int(limit_s / first_s)
    b = first_s - 0.5 * growth_s
    return int((math.sqrt(b * b + 2.0 * growth_s * limit_s) - b) / growth_s)


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


def _decode_pieces(setting: Setting, rank: Array, speculation: Speculation, limit: float) -> dict[str, Array]:
    """Return knots and lines of the decode step over mean context, for each rank batch in `rank`."""
    batches, index = np.unique(rank, return_inverse=True)
    grid = np.unique(np.concatenate([[0.0], np.geomspace(16.0, limit, 80), [128.0, 2048.0, limit]]))
    grid = grid[grid <= limit]
    step = decode(
        setting,
        batches[:, None],
        grid[None, :],
        draft_tokens=speculation.draft_tokens,
        accepted_tokens=speculation.accepted_tokens,
    ).tpot_s
    chosen = [0, len(grid) - 1]
    while True:
        line = np.stack([np.interp(grid, grid[chosen], row[chosen]) for row in step])
        error = np.abs(line / step - 1.0).max(axis=0)
        if error.max() <= STEP_ERROR_RATIO or len(chosen) >= _MAX_KNOTS:
            break
        chosen = sorted({*chosen, int(error.argmax())})
    x, y = grid[chosen], step[:, chosen]
    slope = np.diff(y, axis=1) / np.diff(x)
    base = y[:, :-1] - slope * x[:-1]
    # Lines are over the mean context; the loop holds positions in all, so each batch divides its own slope.
    sequences = np.maximum(np.arange(len(rank), dtype=float), 1.0)
    return {
        "knots": x[1:-1],
        "base": base[index].T,
        "slope": slope[index].T / sequences,
        "error_ratio": np.asarray(error.max()),
    }


def _fill_grid(setting: Setting, limit: float, occupancy: bool) -> dict[str, Array]:
    """Return knots and seconds of a fill chunk over new and cached tokens."""
    place = setting.place
    new = np.unique(np.concatenate([np.arange(1.0, 9.0), np.geomspace(8.0, 65_536.0, 105)]))
    cached = np.unique(np.concatenate([[0.0], np.geomspace(64.0, limit, 64)]))
    # A sequence shared by the ranks is a fraction of a sequence on each, with all of its positions to attend to. The
    # host's floor is kept apart, so that rows of a decoding batch can hide under it.
    engine = replace(setting.machine.engine, eager_layer_s=0.0)
    bare = replace(setting, machine=setting.machine._replace(engine=engine))
    total = run_pass(bare, 1.0 / place.dp, new[:, None], cached[None, :], fill=True).seconds
    floor = run_pass(setting, 1.0 / place.dp, 1.0, 0.0, fill=True).seconds
    scale = stage_excess_ratio(setting.model, place.pp) / place.pp if occupancy else 1.0
    return {"new": new, "cached": cached, "fill": total * scale, "floor_s": floor * scale}


def _token_only(setting: Setting, fill: bool, tokens: Array) -> Array:
    """Return the seconds of what does not read context."""
    total = np.zeros_like(tokens)
    for op in token_operations(setting, fill, tokens):
        total = total + op.layers * op.cost.seconds
    return total


def _decode_token_share(setting: Setting, rank: Array, speculation: Speculation) -> Array:
    """Return the part of a decode step that does not read context, in the step's own seconds per output token."""
    empty = decode(
        setting,
        rank,
        0.0,
        draft_tokens=speculation.draft_tokens,
        accepted_tokens=speculation.accepted_tokens,
    )
    reading = np.zeros_like(rank)
    width = np.full_like(rank, 1.0 + speculation.draft_tokens)
    for op in attention_operations(setting, False, rank, width, np.zeros_like(rank)):
        reading = reading + op.layers * op.cost.seconds
    scale = stage_excess_ratio(setting.model, setting.place.pp) / speculation.accepted_tokens
    return np.asarray(empty.tpot_s - reading * scale)


def build_arrays(setting: Setting, speculation: Speculation, max_batch: int, occupancy: bool) -> dict[str, Array]:
    """Evaluate the tables of one worker; what the cache stores."""
    place = setting.place
    limit = float(setting.model.context_tokens)
    ranks = place.dp * place.pp
    rank = np.maximum(np.ceil(np.arange(0.0, max_batch + 1.0) / ranks), 1.0)
    tokens = np.unique(np.concatenate([np.arange(0.0, 257.0), np.geomspace(256.0, 131_072.0, 160)]))
    return {
        **_decode_pieces(setting, rank, speculation, limit),
        "decode_token_s": _decode_token_share(setting, rank, speculation),
        "rank_batch": rank,
        **_fill_grid(setting, limit, occupancy),
        "tokens": tokens,
        "token_s": _token_only(setting, True, np.maximum(tokens, 1.0)),
        "dp": np.asarray(float(place.dp)),
    }


def step_times(
    *,
    model: Model,
    hardware: Hardware,
    engine: Engine,
    placement: Placement,
    precision: Precision | None = None,
    speculation: Speculation | None = None,
    max_batch: int | None = None,
    occupancy: bool = False,
    cache: bool = True,
) -> StepTable:
    """Return the tables of one worker, from the cache where its digest is known.

    Parameters
    ----------
    max_batch : int, optional
        Largest batch tabulated; by default what fits beside the weights at 1,024 positions each, 4,096 at most.
    occupancy : bool
        Fill seconds are those that a chunk holds one pipeline stage (a worker kept full) instead of the latency through
        all stages (a lone request). They differ only for pp > 1.
    cache : bool
        Read and write the tables under `plant.table_cache.cache_directory()`.

    Raises
    ------
    PlacementError
        When the widths do not fit the model or the hardware.
    """
    check_placement(model, hardware, placement)
    setting = setting_of(model, hardware, engine, placement, precision)
    chosen = speculation or Speculation()
    if max_batch is None:
        ranks = placement.dp * placement.pp
        max_batch = min(max(largest_batch(setting, 1024.0) * ranks, ranks), 4096)
    digest = digest_of(setting, chosen, max_batch, occupancy)
    arrays = cached_arrays(digest, lambda: build_arrays(setting, chosen, max_batch, occupancy), enabled=cache)
    return StepTable(arrays, digest)
