"""Judge each series of a file: verdict, reversals, flaps, steps, and the likely mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from scenarios.errors import UserError, nearest
from scenarios.judge import mechanism
from scenarios.judge.query import Range, query_range
from scenarios.judge.read import Raw, read_series, series_of
from scenarios.judge.resample import BRIDGED_RATIO, Even, Step, describe_steps, even, level_changes, without_steps
from scenarios.verdict import Series, SignalVerdict, judge_signal
from scenarios.verdict.types import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The judgement of one series. `mean` are the bins that were judged, from `start_s` on, every `step_s`."""

    name: str
    verdict: SignalVerdict
    scale: float
    reversals_per_hour: float
    flaps_per_hour: float
    steps: tuple[Step, ...]
    likely: str
    notes: tuple[str, ...]
    samples: int
    start_s: float
    step_s: float
    mean: Floats

    @property
    def span_s(self) -> float:
        """Return the length of what was judged, seconds."""
        return len(self.mean) * self.step_s

    def to_json(self) -> dict[str, object]:
        """Return all but the arrays."""
        return {
            **self.verdict.to_json(),
            "scale": self.scale,
            "reversals_per_hour": round(self.reversals_per_hour, 3),
            "flaps_per_hour": round(self.flaps_per_hour, 3),
            "steps": [asdict(step) for step in self.steps],
            "mechanism": self.likely,
            "notes": list(self.notes),
            "samples": self.samples,
            "span_s": self.span_s,
            "step_s": self.step_s,
        }


def judge_file(
    path: Path,
    *,
    time: str | None = None,
    columns: Sequence[str] = (),
    load: str | None = None,
    scale: float | None = None,
    dead_time_s: float | None = None,
) -> list[Judged]:
    """Judge the series of a file; see `read_series` for what is understood and `judge_series` for the rest.

    `load` names the series that came from outside: it is not judged, but compared with each of the others.
    """
    wanted = [*columns, load] if columns and load and load not in columns else list(columns)
    series_read = read_series(path, time=time, columns=wanted)
    return judge_all(series_read, str(path), load=load, scale=scale, dead_time_s=dead_time_s)


def judge_range(
    asked: Range, *, load: str | None = None, scale: float | None = None, dead_time_s: float | None = None
) -> list[Judged]:
    """Judge the series that a query to a Prometheus server finds."""
    try:
        series_read = series_of(query_range(asked))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"--prometheus {asked.url}: does not answer as a Prometheus does") from None
    return judge_all(series_read, f"--query {asked.query}", load=load, scale=scale, dead_time_s=dead_time_s)


def judge_all(
    series_read: Sequence[Raw],
    path: str,
    *,
    load: str | None = None,
    scale: float | None = None,
    dead_time_s: float | None = None,
) -> list[Judged]:
    """Judge each series but the load; `path` stands in errors for where they come from."""
    names = [series.name for series in series_read]
    if load is not None and load not in names:
        raise UserError(f"{path}: no load series `{load}`{nearest(load, names)}; there are {', '.join(names[:8])}")
    inputs = {series.name: series for series in series_read if series.name == load}
    judged = [series for series in series_read if series.name != load]
    if not judged:
        raise UserError(f"{path}: `{load}` is the only series; there is no other to compare it with")
    return [judge_series(series, inputs=inputs, scale=scale, dead_time_s=dead_time_s) for series in judged]


def judge_series(
    raw: Raw,
    *,
    inputs: Mapping[str, Raw] | None = None,
    scale: float | None = None,
    dead_time_s: float | None = None,
) -> Judged:
    """Judge one series.

    Parameters
    ----------
    raw : Raw
        The series as read.
    inputs : mapping of str to Raw, optional
        Series from outside the loop; each is put into the same bins.
    scale : float, optional
        What a swing is measured against; by default the mean size of the series.
    dead_time_s : float, optional
        The loop's dead time, if known, for the likely mechanism.
    """
    series = even(raw)
    cuts = level_changes(series.mean) if len(series.mean) >= 40 else []
    notes = [*raw.notes, *series.notes]
    size = scale or float(np.mean(np.abs(series.mean))) if len(series.mean) else 1.0
    size = size if size > 0 else 1.0
    outside = {}
    for name, load in (inputs or {}).items():
        outside[name], load_notes = _in_bins_of(series, load, raw.name)
        notes += load_notes
    verdict = _verdict(raw.name, series, size, outside, cuts)
    if cuts:
        flat = without_steps(series.mean, cuts)
        moved = replace(series, mean=flat, minimum=flat, maximum=flat)
        again = _verdict(raw.name, moved, size, outside, [])
        # A cycle that shows only when lasting changes of level are taken out is a cycle all the same.
        if again.oscillates or again.verdict == "driven" or verdict.verdict in ("undecided", "unbounded"):
            verdict = again
        notes.append(f"{len(cuts)} lasting changes of level taken out before the cycle was looked for")
    t, values = _judged_part(raw, series)
    hours = max(float(t[-1] - t[0]), 1e-9) / 3600 if len(t) > 1 else 1.0
    least = mechanism.least_move(values, series.held)
    return Judged(
        name=raw.name,
        verdict=verdict,
        scale=size,
        reversals_per_hour=mechanism.reversals(values, least) / hours,
        flaps_per_hour=mechanism.flaps(values, least) / hours,
        steps=tuple(describe_steps(series, cuts)),
        likely=mechanism.likely(verdict, t, values, held=series.held, dead_time_s=dead_time_s, loads=bool(outside)),
        notes=tuple(notes),
        samples=len(raw.t_s),
        start_s=series.start_s,
        step_s=series.step_s,
        mean=series.mean,
    )


def _verdict(name: str, series: Even, scale: float, inputs: Mapping[str, Floats], cuts: list[int]) -> SignalVerdict:
    return judge_signal(
        Series(
            name=name,
            step_s=series.step_s,
            mean=series.mean,
            minimum=series.minimum,
            maximum=series.maximum,
            scale=scale,
            # A series with lasting steps is not one that grows without bound.
            stock=bool(len(series.mean) and series.mean.min() >= 0 and not cuts),
        ),
        inputs=inputs,
    )


def _judged_part(raw: Raw, series: Even) -> tuple[Floats, Floats]:
    """Return instants and values of the stretch that was judged: rates an hour are of it, not of the gaps around it."""
    if len(raw.t_s) < 2:
        return raw.t_s, raw.values
    end_s = series.start_s + (len(series.mean) + 1) * series.step_s
    inside = (raw.t_s >= series.start_s) & (raw.t_s <= end_s)
    return raw.t_s[inside], raw.values[inside]


def _in_bins_of(series: Even, other: Raw, name: str) -> tuple[Floats, list[str]]:
    """Return a load series in the bins of the judged one, and notes on what was repaired."""
    at = series.start_s + (np.arange(len(series.mean)) + 0.5) * series.step_s
    if not len(other.t_s):
        raise UserError(f"load series `{other.name}`: holds no number")
    notes = [f"load `{other.name}`: {note}" for note in (*other.notes, *even(other).notes)]
    slack = series.step_s
    beyond = float(np.mean((at < other.t_s[0] - slack) | (at > other.t_s[-1] + slack))) if len(at) else 0.0
    if beyond > BRIDGED_RATIO:
        raise UserError(
            f"load series `{other.name}`: does not reach over {beyond:.0%} of `{name}`, from {other.t_s[0]:.4g} to "
            f"{other.t_s[-1]:.4g} s; give one as long, or leave --load out"
        )
    if beyond > 0.0:
        notes.append(f"load `{other.name}`: held over the {beyond:.1%} of the record that it does not reach")
    return np.interp(at, other.t_s, other.values), notes
