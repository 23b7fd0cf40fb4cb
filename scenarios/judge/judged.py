"""Judge each series of a file: verdict, reversals, flaps, steps, and the likely mechanism."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from scenarios.errors import UserError, nearest
from scenarios.judge import mechanism
from scenarios.judge.read import Raw, read_series
from scenarios.judge.resample import Even, Step, describe_steps, even, level_changes, without_steps
from scenarios.verdict import Series, SignalVerdict, judge_signal
from scenarios.verdict.words import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What is said of one series. `mean` are the bins that were judged, from `start_s` on, every `step_s`."""

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

    `load` names the series that came from outside: it is not judged, but held against each of the others.
    """
    wanted = [*columns, load] if columns and load and load not in columns else list(columns)
    found = read_series(path, time=time, columns=wanted)
    names = [one.name for one in found]
    if load is not None and load not in names:
        raise UserError(f"{path}: no load series `{load}`{nearest(load, names)}; there are {', '.join(names[:8])}")
    inputs = {one.name: one for one in found if one.name == load}
    judged = [one for one in found if one.name != load]
    if not judged:
        raise UserError(f"{path}: `{load}` is the only series; there is nothing to hold it against")
    return [judge_series(one, inputs=inputs, scale=scale, dead_time_s=dead_time_s) for one in judged]


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
        The series as found.
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
    outside = {name: _beside(series, one) for name, one in (inputs or {}).items()}
    verdict = _verdict(raw.name, series, size, outside, cuts)
    if cuts:
        flat = without_steps(series.mean, cuts)
        moved = replace(series, mean=flat, minimum=flat, maximum=flat)
        again = _verdict(raw.name, moved, size, outside, [])
        # A cycle that shows only when lasting changes of level are taken out is a cycle all the same.
        if again.oscillates or again.verdict == "driven" or verdict.verdict in ("undecided", "unbounded"):
            verdict = again
        notes.append(f"{len(cuts)} lasting changes of level taken out before the cycle was looked for")
    hours = max(float(raw.t_s[-1] - raw.t_s[0]), 1e-9) / 3600 if len(raw.t_s) > 1 else 1.0
    least = mechanism.least_move(raw.values, series.held)
    return Judged(
        name=raw.name,
        verdict=verdict,
        scale=size,
        reversals_per_hour=mechanism.reversals(raw.values, least) / hours,
        flaps_per_hour=mechanism.flaps(raw.values, least) / hours,
        steps=tuple(describe_steps(series, cuts)),
        likely=mechanism.likely(
            verdict, raw.t_s, raw.values, held=series.held, dead_time_s=dead_time_s, loads=bool(outside)
        ),
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


def _beside(series: Even, other: Raw) -> Floats:
    at = series.start_s + (np.arange(len(series.mean)) + 0.5) * series.step_s
    return np.interp(at, other.t_s, other.values) if len(other.t_s) else np.zeros(len(at))
