"""Judge each series of a file: verdict, reversals, flaps, steps, and the likely mechanism."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from scenarios.errors import UserError, nearest
from scenarios.judge import mechanism
from scenarios.judge.levels import Step, describe_steps, level_changes, without_steps
from scenarios.judge.query import Range, query_range
from scenarios.judge.read import Raw, read_series, series_from
from scenarios.judge.resample import BRIDGED_RATIO, Even, even
from scenarios.verdict import Series, SignalVerdict, judge_signal
from scenarios.verdict import moves as zigzag
from scenarios.verdict.types import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The judgement of one series. `mean` are the bins that were judged, from `start_s` on, every `step_s`.

    `held` tells whether it is drawn as steps; `loads` are the load series in the same bins; `epoch_s` is the epoch of
    instant 0, where the file tells it.
    """

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
    held: bool
    loads: Mapping[str, Floats]
    epoch_s: float | None

    @property
    def cost(self) -> str:
        """Return what the swing costs, in words: how far it goes each time, and what an hour of it moves."""
        half, per_hour = self.verdict.amplitude_ratio * self.scale, self.reversals_per_hour
        if not self.held or self.flaps_per_hour == 0:
            return f"swings by {2 * half:.3g} from low to high, {per_hour:.3g} reversals an hour"
        moved = f"about {2 * half * self.flaps_per_hour:.3g} units an hour taken away and brought back"
        return f"swings by {2 * half:.3g} from low to high; {moved}, in {self.flaps_per_hour:.3g} flaps"

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
            "cost_in_words": self.cost,
            "notes": list(self.notes),
            "samples": self.samples,
            "span_s": self.span_s,
            "step_s": self.step_s,
        }


def judge_file(
    path: Path,
    *more: Path,
    time: str | None = None,
    columns: Sequence[str] = (),
    by: Sequence[str] = (),
    load: str | None = None,
    scale: float | None = None,
    dead_time_s: float | None = None,
    steps: bool | None = None,
) -> list[Judged]:
    """Judge the series of a file, or of several; see `read_series` for what is read and `judge_series` for the rest.

    `load` names the series that came from outside: it is not judged, but compared with each of the others. Series of
    the same name in several files are told apart by their file's name.
    """
    wanted = [*columns, load] if columns and load and load not in columns else list(columns)
    several = {file: read_series(file, time=time, columns=wanted if not more else (), by=by) for file in (path, *more)}
    series_read = _apart(several)
    names = [series.name for series in series_read]
    if more and wanted:
        series_read = [file for file in series_read if {file.name, file.name.split("{")[0]} & set(wanted)]
        if not series_read:
            raise UserError(f"no series `{wanted[0]}`{nearest(wanted[0], names)}; there are {', '.join(names[:8])}")
    return judge_all(series_read, str(path), load=load, scale=scale, dead_time_s=dead_time_s, steps=steps)


def judge_range(
    asked: Range, *, load: str | None = None, scale: float | None = None, dead_time_s: float | None = None
) -> list[Judged]:
    """Judge the series that a query to a Prometheus server finds."""
    try:
        series_read = series_from(query_range(asked))
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
    steps: bool | None = None,
) -> list[Judged]:
    """Judge each series but the load; `path` stands in errors for where they come from."""
    names = [series.name for series in series_read]
    if load is not None and load not in names:
        raise UserError(f"{path}: no load series `{load}`{nearest(load, names)}; there are {', '.join(names[:8])}")
    inputs = {series.name: series for series in series_read if series.name == load}
    judged = [series for series in series_read if series.name != load]
    if not judged:
        raise UserError(f"{path}: `{load}` is the only series; there is no other to compare it with")
    return [judge_series(series, inputs=inputs, scale=scale, dead_time_s=dead_time_s, steps=steps) for series in judged]


def _apart(several: Mapping[Path, list[Raw]]) -> list[Raw]:
    # Files with epochs share one clock; their series keep their names where these tell them apart.
    starts = [raw.epoch_s for series in several.values() for raw in series if raw.epoch_s is not None]
    named = Counter(raw.name for series in several.values() for raw in series)
    apart = []
    for path, series in several.items():
        for raw in series:
            name = raw.name if named[raw.name] == 1 else f"{path.stem}: {raw.name}"
            later = 0.0 if raw.epoch_s is None else raw.epoch_s - min(starts)
            epoch_s = None if raw.epoch_s is None else min(starts)
            apart.append(replace(raw, name=name, t_s=raw.t_s + later, epoch_s=epoch_s))
    return apart


def judge_series(
    raw: Raw,
    *,
    inputs: Mapping[str, Raw] | None = None,
    scale: float | None = None,
    dead_time_s: float | None = None,
    steps: bool | None = None,
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
    steps : bool, optional
        True: a log of changes, whose levels last until the next row; None: found out.
    """
    series = even(raw, steps=steps)
    cuts = level_changes(series.mean) if len(series.mean) >= 40 else []
    notes = [*raw.notes, *series.notes]
    size = scale or float(np.mean(np.abs(series.mean))) if len(series.mean) else 1.0
    size = size if size > 0 else 1.0
    outside = {}
    for name, load in (inputs or {}).items():
        outside[name], load_notes = _in_bins_of(series, load, raw.name)
        notes += load_notes
    t, values = _judged_part(raw, series)
    least = mechanism.least_move(values, series.held)
    actuator = bool(ACTUATOR.search(raw.name)) and _is_brisk(values, least, t, bool(outside))
    verdict = _verdict(raw.name, series, size, outside, cuts, actuator)
    if cuts:
        flat = without_steps(series.mean, cuts)
        moved = replace(series, mean=flat, minimum=flat, maximum=flat)
        again = _verdict(raw.name, moved, size, outside, [], actuator)
        # A cycle that shows only when lasting changes of level are taken out is a cycle all the same.
        if again.oscillates or again.verdict == "driven" or verdict.verdict in ("undecided", "unbounded"):
            verdict = again
        notes.append(f"{len(cuts)} lasting changes of level taken out before the cycle was looked for")
    verdict = _by_the_calendar(verdict)
    hours = max(float(t[-1] - t[0]), 1e-9) / 3600 if len(t) > 1 else 1.0
    return Judged(
        name=raw.name,
        verdict=verdict,
        scale=size,
        reversals_per_hour=zigzag.reversals(values, least) / hours,
        flaps_per_hour=zigzag.flaps(values, least) / hours,
        steps=tuple(describe_steps(series, cuts)),
        likely=mechanism.likely(verdict, t, values, held=series.held, dead_time_s=dead_time_s, loads=bool(outside)),
        notes=tuple(notes),
        samples=len(raw.t_s),
        start_s=series.start_s,
        step_s=series.step_s,
        mean=series.mean,
        held=series.held,
        loads=outside,
        epoch_s=raw.epoch_s,
    )


# What a controller sets, by the names that people give it; its irregular reversals are hunting. Without a load to
# compare with, reversals further apart than this on average may be the load's own.
ACTUATOR = re.compile(r"replica|worker|\bpods?\b|instance|desired|\bnodes?\b|gpus?\b", re.IGNORECASE)
BRISK_S = 900.0


def _is_brisk(values: Floats, least: float, t: Floats, loads: bool) -> bool:
    count = zigzag.reversals(values, least)
    return loads or (count > 0 and float(t[-1] - t[0]) / count <= BRISK_S)


def _by_the_calendar(verdict: SignalVerdict) -> SignalVerdict:
    clock = mechanism.calendar_period(verdict.period_s)
    if clock is None or not verdict.oscillates:
        return verdict
    return replace(verdict, verdict="driven", reason=f"a {clock}: it follows the calendar")


def _verdict(
    name: str, series: Even, scale: float, inputs: Mapping[str, Floats], cuts: list[int], actuator: bool
) -> SignalVerdict:
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
            actuator=actuator,
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
