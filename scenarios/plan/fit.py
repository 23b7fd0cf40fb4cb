"""Fit a worker's step times to a trace that has the first token and the end of each request.

While request i decodes on a worker, n_i steps take end_i - start_i seconds. With B and K the batch and the KV tokens of
that worker, averaged over those seconds, and N the new tokens that it filled meanwhile,

    (end_i - start_i) / n_i = base + per_sequence B + per_kv_token K + per_new_token N / n_i

which is solved for coefficients that are not negative, by least squares of relative errors. Intervals: bootstrap over
twenty consecutive blocks of the trace, because neighbouring requests share their steps.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from plant.model.kernels import Array
from scenarios.errors import UserError
from scenarios.writing import disk_errors, reason

NUMBERS = ("base_s", "per_sequence_s", "per_kv_token_s", "per_new_token_s")
# Names under which the columns are known, ours first; `--columns` names others.
ALIASES: dict[str, tuple[str, ...]] = {
    "arrived": ("arrived_s", "arrived", "arrival_s", "arrival_time", "timestamp", "ts"),
    "prompt": ("prompt_tokens", "input_tokens", "prompt_len", "input_length", "prompt"),
    "output": ("output_tokens", "gen_len", "output_len", "output_length", "output"),
    "first": ("filled_s", "first_token_s", "first"),
    "ttft": ("ttft_s", "ttft"),
    "end": ("ended_s", "end_s", "ended", "end"),
    "cached": ("cached_tokens", "cached"),
    "start": ("joined_s",),
    "fill_start": ("fill_started_s",),
    "worker": ("decode_worker", "worker", "instance"),
    "fill_worker": ("fill_worker",),
}
_LEAST_ROWS, _BLOCKS, _DRAWS = 30, 20, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A number with the bounds between which 95 of 100 resampled traces put it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What a trace says of its workers: the linear numbers, the first token, and rows for a table.

    `first_fixed_s` and `first_per_new_token_s`: seconds from the start of a fill that nothing delayed to its first
    token; None where fewer than thirty such fills are in the trace. `steps` are (batch, KV tokens, seconds).
    """

    rows: int
    workers: int
    numbers: Mapping[str, Interval]
    median_error_ratio: float
    batch_range: tuple[float, float]
    first_fixed_s: Interval | None
    first_per_new_token_s: Interval | None
    steps: tuple[tuple[float, float, float], ...]
    fills: tuple[tuple[float, float, float], ...]

    def times(self) -> str:
        """Return the line that a scenario takes."""
        inner = ", ".join(f"{name} = {self.numbers[name].value:.4g}" for name in NUMBERS)
        return f'times = {{ kind = "linear", {inner} }}'


def read_requests(path: Path, columns: Mapping[str, str], unit_s: float = 1.0) -> pd.DataFrame:
    """Return requests as a table with the names of `ALIASES`, times in seconds; a run's folder is a trace too.

    Raises
    ------
    UserError
        In one line: the file cannot be read, or a column is missing.
    """
    file = path / "turns.parquet" if path.is_dir() else path
    try:
        if file.suffix == ".parquet":
            table = pd.read_parquet(file)
        elif file.suffix in (".jsonl", ".ndjson"):
            table = pd.read_json(file, lines=True)
        else:
            table = pd.read_csv(file)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {reason(error)}") from error
    except ValueError as error:
        raise UserError(f"{file}: is no table: {str(error).splitlines()[0]}") from error
    unknown = [key for key in columns if key not in ALIASES]
    if unknown:
        raise UserError(f"--columns {unknown[0]}: is unknown; known: {', '.join(ALIASES)}")
    absent = [name for name in columns.values() if name not in table]
    if absent:
        raise UserError(f"{file}: column {absent[0]} is missing; there are {', '.join(map(str, table.columns))}")
    named = {key: columns.get(key) or next((a for a in known if a in table), None) for key, known in ALIASES.items()}
    numbers = {key: pd.to_numeric(table[name], errors="coerce") for key, name in named.items() if name is not None}
    for key in ("arrived", "prompt", "output", "end"):
        if key not in numbers:
            raise UserError(f"{file}: no column for `{key}` ({', '.join(ALIASES[key])}); name it: --columns {key}=NAME")
    if "first" not in numbers and "ttft" not in numbers:
        raise UserError(f"{file}: no column for the first token (first or ttft); name it: --columns ttft=NAME")
    requests = pd.DataFrame(numbers)
    times = [name for name in ("arrived", "first", "ttft", "end", "start", "fill_start") if name in requests]
    requests[times] *= unit_s
    if "first" not in requests:
        requests["first"] = requests["arrived"] + requests["ttft"]
    return _decoded(requests, file)


def _decoded(requests: pd.DataFrame, file: Path) -> pd.DataFrame:
    """Fill in what may be left out, and keep requests that decoded."""
    requests = requests.copy()
    for name, value in (("cached", 0.0), ("worker", 0.0)):
        requests[name] = requests[name].fillna(value) if name in requests else value
    requests["start"] = requests["start"].fillna(requests["first"]) if "start" in requests else requests["first"]
    needed = requests[["arrived", "prompt", "output", "first", "end"]].notna().all(axis=1)
    usable = requests[needed & (requests["output"] >= 2) & (requests["end"] > requests["start"])]
    if len(usable) < _LEAST_ROWS:
        raise UserError(
            f"{file}: {len(usable)} of {len(requests)} requests have a first token, an end and two tokens of output; "
            f"at least {_LEAST_ROWS} would do"
        )
    return usable.sort_values("start", kind="stable").reset_index(drop=True)


def fit(requests: pd.DataFrame) -> Fitted:
    """Return the step times that `requests` show."""
    steps = (requests["output"] - 1).to_numpy(dtype=float)
    span_s = (requests["end"] - requests["start"]).to_numpy(dtype=float)
    own_fills = "fill_worker" not in requests or bool((requests["fill_worker"] == requests["worker"]).mean() > 0.5)
    batch, kv, filled = np.zeros(len(requests)), np.zeros(len(requests)), np.zeros(len(requests))
    workers = requests.groupby("worker", sort=True).indices
    for rows in workers.values():
        batch[rows], kv[rows], filled[rows] = _surroundings(requests.iloc[rows])
    if not own_fills:
        filled[:] = 0.0
    step_s = span_s / steps
    matrix = np.stack([np.ones_like(batch), batch, kv, filled / steps], axis=1) / step_s[:, None]
    values, draws = _bootstrapped(matrix)
    error = np.abs(matrix @ values - 1.0)
    first = _first_tokens(requests)
    alone_s = step_s - values[3] * filled / steps
    return Fitted(
        rows=len(requests),
        workers=len(workers),
        numbers={name: _interval(values[i], draws[:, i]) for i, name in enumerate(NUMBERS)},
        median_error_ratio=float(np.median(error)),
        batch_range=(float(batch.min()), float(batch.max())),
        first_fixed_s=None if first is None else first[0],
        first_per_new_token_s=None if first is None else first[1],
        steps=_binned(batch, kv, alone_s),
        fills=() if first is None else first[2],
    )


def _surroundings(rows: pd.DataFrame) -> tuple[Array, Array, Array]:
    """Return, for each request of one worker, mean batch and KV tokens while it decoded, and the tokens filled then."""
    start, end = rows["start"].to_numpy(dtype=float), rows["end"].to_numpy(dtype=float)
    prompt, generated = rows["prompt"].to_numpy(dtype=float), (rows["output"] - 1).to_numpy(dtype=float)
    rate = generated / (end - start)
    at = np.concatenate([start, end])
    order = np.argsort(at, kind="stable")
    times = at[order]
    widths = np.diff(times, append=times[-1])
    alive = np.cumsum(np.concatenate([np.ones_like(start), -np.ones_like(end)])[order])
    growth = np.cumsum(np.concatenate([rate, -rate])[order])
    jumps = np.cumsum(np.concatenate([prompt, -(prompt + generated)])[order])
    # Held just after an event: what jumped in, and what grew since; then the integrals up to each event.
    held = jumps + np.concatenate([[0.0], np.cumsum((growth * widths)[:-1])])
    batch_s = np.concatenate([[0.0], np.cumsum((alive * widths)[:-1])])
    kv_s = np.concatenate([[0.0], np.cumsum((held * widths + 0.5 * growth * widths**2)[:-1])])
    places = np.empty(len(at), dtype=int)
    places[order] = np.arange(len(at))
    first, last = places[: len(start)], places[len(start) :]
    span_s = end - start
    filled_at = np.sort(rows["first"].to_numpy(dtype=float))
    new = (rows["prompt"] - rows["cached"]).to_numpy(dtype=float)[np.argsort(rows["first"].to_numpy(), kind="stable")]
    summed = np.concatenate([[0.0], np.cumsum(new)])
    filled = summed[np.searchsorted(filled_at, end, "left")] - summed[np.searchsorted(filled_at, start, "right")]
    return (batch_s[last] - batch_s[first]) / span_s, (kv_s[last] - kv_s[first]) / span_s, filled


def _bootstrapped(matrix: Array) -> tuple[Array, Array]:
    """Return non-negative coefficients of `matrix` c = 1, and those of resampled blocks, shape (draws, columns)."""
    scale = np.maximum(np.linalg.norm(matrix, axis=0), 1e-300)
    blocks = np.array_split(matrix / scale, _BLOCKS)
    grams = np.stack([block.T @ block for block in blocks])
    sides = np.stack([block.sum(axis=0) for block in blocks])
    rng = np.random.default_rng(0)
    picks = rng.integers(0, len(blocks), (_DRAWS, len(blocks)))
    drawn = np.stack([_non_negative(grams[p].sum(axis=0), sides[p].sum(axis=0)) for p in picks])
    return _non_negative(grams.sum(axis=0), sides.sum(axis=0)) / scale, drawn / scale


def _non_negative(gram: Array, side: Array) -> Array:
    """Solve gram c = side for c >= 0 (the normal equations of a least-squares problem)."""
    root = np.linalg.cholesky(gram + 1e-12 * np.trace(gram) * np.eye(len(gram)))
    return np.asarray(nnls(root.T, np.linalg.solve(root, side))[0])


def _interval(value: float, draws: Array) -> Interval:
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(value=float(value), low=float(low), high=float(high))


def _first_tokens(requests: pd.DataFrame) -> tuple[Interval, Interval, tuple[tuple[float, float, float], ...]] | None:
    """Return fixed and per-token seconds of a fill, over fills that waited for nothing."""
    new = (requests["prompt"] - requests["cached"]).to_numpy(dtype=float)
    if "fill_start" in requests and requests["fill_start"].notna().all():
        took, keep = (requests["first"] - requests["fill_start"]).to_numpy(dtype=float), np.ones(len(requests), bool)
    else:
        took, keep = (requests["first"] - requests["arrived"]).to_numpy(dtype=float), _undelayed(requests)
    keep = keep & (took > 0.0) & (new > 0.0)
    if keep.sum() < _LEAST_ROWS:
        return None
    matrix = np.stack([np.ones(keep.sum()), new[keep]], axis=1) / took[keep][:, None]
    values, draws = _bootstrapped(matrix)
    cached = requests["cached"].to_numpy(dtype=float)[keep]
    rows = _binned(new[keep], cached, took[keep])
    return _interval(values[0], draws[:, 0]), _interval(values[1], draws[:, 1]), rows


def _undelayed(requests: pd.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which requests were alone between arrival and first token, on any worker."""
    order = np.argsort(requests["arrived"].to_numpy(), kind="stable")
    arrived, first = requests["arrived"].to_numpy()[order], requests["first"].to_numpy()[order]
    latest = np.concatenate([[-np.inf], np.maximum.accumulate(first)[:-1]])
    following = np.append(arrived[1:], np.inf)
    alone = np.empty(len(order), dtype=bool)
    alone[order] = (latest <= arrived) & (following >= first)
    return alone


def _binned(x: Array, y: Array, seconds: Array) -> tuple[tuple[float, float, float], ...]:
    """Return means over cells of equal counts along x and, within these, along y; cells of five rows or more."""
    cells = []
    for part in np.array_split(np.argsort(x, kind="stable"), 16):
        for cell in np.array_split(part[np.argsort(y[part], kind="stable")], 6):
            if len(cell) >= 5:
                cells.append((float(x[cell].mean()), float(y[cell].mean()), float(seconds[cell].mean())))
    return tuple(cells)


def write_table(fitted: Fitted, out: Path) -> int:
    """Write the rows for `times = {kind = "table"}`; return how many there are."""
    heads = ("batch", "kv_tokens", "step_s", "new_tokens", "cached_tokens", "pass_s")
    steps = [(max(b, 1.0), kv, s) for b, kv, s in fitted.steps if s > 0.0]
    with disk_errors(out), out.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(heads)
        table.writerows([f"{b:.6g}", f"{kv:.8g}", f"{s:.6g}", "", "", ""] for b, kv, s in steps)
        table.writerows(["", "", "", f"{n:.8g}", f"{c:.8g}", f"{s:.6g}"] for n, c, s in fitted.fills)
    return len(steps) + len(fitted.fills)
