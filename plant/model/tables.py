"""Build the tables of a worker's step times from its model, hardware and placement.

Everything that the event loop asks for is evaluated once over a grid. At a fixed batch a decode step is piecewise
linear in the mean context, with a single piece where attention neither saturates (window, top-k) nor changes places
with the transfers that hide it. Knots are added until the error at checked points is below `STEP_ERROR_RATIO`;
`StepTable.error_ratio` states what was reached. The busiest data-parallel rank sets the pace of its group (essay,
section 3.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from plant.model.hardware import Engine, Hardware
from plant.model.kernels import Array
from plant.model.layer import Setting, attention_operations, token_operations
from plant.model.memory import largest_batch
from plant.model.moe import Model
from plant.model.placement import Placement, check_placement
from plant.model.precision import Precision
from plant.model.regimes import decode, run_pass, setting_of, stage_excess_ratio
from plant.model.step_table import StepTable
from plant.model.table_cache import cached_arrays, digest_of

STEP_ERROR_RATIO = 1e-3

_MAX_KNOTS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Multi-token prediction: positions verified beyond one, and output tokens per pass on average."""

    draft_tokens: int = 0
    accepted_tokens: float = 1.0


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
    """Return the part of a decode step that does not read context, in the same seconds per output token as the step."""
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
        Read and write the tables under `plant.model.table_cache.cache_directory()`.

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
