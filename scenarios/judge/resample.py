"""Resample a series into equal bins: irregular sampling, gaps, and lasting steps of level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scenarios.judge.read import Raw
from scenarios.verdict.cycle import SHORTEST
from scenarios.verdict.types import Floats

MOST_BINS = 20_000
FILL = 4
# A scraped series misses a sample when the next one is later than this many intervals, and more than one when later
# than a gap's.
GAP_INTERVALS, MISSED_INTERVALS = 2.5, 1.5
# Scrapes lost one by one leave gaps as long as chance makes them; one that chance makes in fewer than one record in
# this many is an outage. A gap too long for that is bridged all the same while it is a small part of the record.
ONE_RECORD_IN = 100.0
# A series that keeps few levels, each for several samples or in turns, holds them between samples.
MOST_HELD_LEVELS = 12
# A log of changes has more uneven waits than this; a scrape that turns at every sample has as few as it has gaps.
UNEVEN_SHARE = 0.05
# A series without a regular interval has a hole worth a note where this many usual intervals, and this share of
# the record, are without a sample.
HOLE_INTERVALS, HOLE_RATIO = 10.0, 0.05
# Gaps that together stay below this share of the record are bridged; beyond it the longest stretch is judged.
BRIDGED_RATIO = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Even:
    """A series in equal bins from `start_s` on, with notes on what was repaired."""

    start_s: float
    step_s: float
    mean: Floats
    minimum: Floats
    maximum: Floats
    held: bool
    notes: tuple[str, ...]


def even(raw: Raw, step_s: float | None = None, steps: bool | None = None) -> Even:
    """Return the series in equal bins of time-weighted means and extremes.

    Levels (replicas, queue lengths, settings) hold their value until the next sample; others are joined by lines. A
    series sampled at a steady interval may have gaps; a log of changes has none, for it holds between its rows.

    Parameters
    ----------
    raw : Raw
        The series as read.
    step_s : float, optional
        Width of a bin, seconds; by default that of the sampling.
    steps : bool, optional
        True: a log of changes; None: found out.
    """
    t, y = raw.t_s, raw.values
    if len(t) < 2:
        return Even(start_s=0.0, step_s=step_s or 1.0, mean=y, minimum=y, maximum=y, held=True, notes=())
    gaps = np.diff(t)
    usual = float(np.median(gaps))
    logged = is_change_log(t, y) if steps is None else steps
    held = logged or is_held(y)
    scraped = not logged and float(np.mean(np.abs(gaps - usual) < 0.2 * usual)) > 0.6
    notes: list[str] = []
    if logged:
        notes.append(f"{len(t)} rows, one a change: each level is held until the next row")
    elif scraped:
        t, y, notes = _without_gaps(t, y, usual)
    else:
        notes.append(f"irregular sampling (median {usual:.4g} s) put into equal bins")
        longest = int(np.argmax(gaps))
        if gaps[longest] > max(HOLE_INTERVALS * usual, HOLE_RATIO * float(t[-1] - t[0])):
            how = "held" if held else "joined by a line"
            notes.append(f"nothing for {gaps[longest]:.4g} s from {t[longest]:.4g} s on: {how}")
    span = float(t[-1] - t[0])
    finest = usual if scraped else max(float(np.quantile(gaps, 0.25)) / (FILL if logged else 1), span / MOST_BINS)
    width = max(step_s or finest, span / MOST_BINS)
    if scraped and width > 1.01 * (step_s or usual):
        notes.append(f"{len(t)} samples every {usual:.4g} s put into {MOST_BINS} bins of {width:.4g} s")
    if scraped and step_s is None and len(t) <= MOST_BINS and float(np.ptp(np.diff(t))) < 0.02 * usual:
        # A held value fills its interval, so that a series that turns at every sample still has a shape.
        # Too few samples stay as they are, so that filling does not make them look enough.
        parts = FILL if held and SHORTEST <= len(t) <= MOST_BINS // FILL else 1
        y = np.repeat(y, parts)
        return Even(
            start_s=float(t[0]), step_s=usual / parts, mean=y, minimum=y, maximum=y, held=held, notes=tuple(notes)
        )
    return _binned(t, y, width, held, tuple(notes))


def is_held(y: Floats) -> bool:
    """Tell whether the values are levels that last until the next sample: whole numbers, or a few that come again."""
    if bool(np.all(y == np.round(y))):
        return True
    levels = len(np.unique(y))
    return levels <= min(MOST_HELD_LEVELS, len(y) // 4)


def is_change_log(t: Floats, y: Floats) -> bool:
    """Tell whether there is a row for each change alone: levels that never come twice in a row, at uneven times."""
    if len(y) < 8 or not is_held(y) or bool(np.any(np.diff(y) == 0)):
        return False
    gaps = np.diff(t)
    usual = float(np.median(gaps))
    return float(np.mean(np.abs(gaps - usual) > 0.2 * usual)) > UNEVEN_SHARE


def _without_gaps(t: Floats, y: Floats, usual: float) -> tuple[Floats, Floats, list[str]]:
    intervals = np.diff(t) / usual
    lone = int(np.sum((intervals > MISSED_INTERVALS) & (intervals <= GAP_INTERVALS)))
    notes = [f"{_many(lone, 'sample')} missed singly: bridged"] if lone else []
    wide = np.flatnonzero(intervals > GAP_INTERVALS)
    if len(wide) == 0:
        return t, y, notes
    span = float(t[-1] - t[0])
    # Scrapes are lost one by one with this chance; so many in a row are lost by chance in one record in a hundred.
    lost = float(np.mean(intervals > MISSED_INTERVALS))
    longest_by_chance = 1.5 + np.log(ONE_RECORD_IN * len(intervals)) / -np.log(min(lost, 0.9))
    outages = np.flatnonzero(intervals > max(GAP_INTERVALS, longest_by_chance))
    missing = float(np.sum(np.diff(t)[wide])) / span
    if float(np.sum(np.diff(t)[outages])) / span <= BRIDGED_RATIO:
        return t, y, [*notes, f"{_many(len(wide), 'gap')} ({missing:.1%} of the record) bridged"]
    edges = np.concatenate([[0], outages + 1, [len(t)]])
    longest = int(np.argmax(np.diff(edges)))
    keep = slice(int(edges[longest]), int(edges[longest + 1]))
    start_s, end_s = float(t[keep][0]), float(t[keep][-1])
    share = f"{_many(len(wide), 'gap')} of {missing:.0%} of the record"
    note = f"{share}: judged its longest stretch alone, from {start_s:.4g} to {end_s:.4g} s"
    return t[keep], y[keep], [*notes, note]


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _binned(t: Floats, y: Floats, width: float, held: bool, notes: tuple[str, ...]) -> Even:
    count = int((t[-1] - t[0]) / width)
    if count < 1:
        return Even(start_s=float(t[0]), step_s=width, mean=y[:1], minimum=y[:1], maximum=y[:1], held=held, notes=notes)
    edges = t[0] + np.arange(count + 1) * width
    pieces = y[:-1] if held else (y[1:] + y[:-1]) / 2
    area = np.concatenate([[0.0], np.cumsum(pieces * np.diff(t))])
    # The integral between samples is a line for held values; for joined ones its curvature within a bin is small.
    mean = np.diff(np.interp(edges, t, area)) / width
    at_edge = y[np.searchsorted(t, edges, side="right") - 1] if held else np.interp(edges, t, y)
    low, high = np.minimum(at_edge[1:], at_edge[:-1]), np.maximum(at_edge[1:], at_edge[:-1])
    if held:
        low, high = at_edge[:-1].copy(), at_edge[:-1].copy()
    place = np.clip(((t - t[0]) / width).astype(np.int64), 0, count - 1)
    inside = t < edges[-1]
    np.minimum.at(low, place[inside], y[inside])
    np.maximum.at(high, place[inside], y[inside])
    return Even(start_s=float(t[0]), step_s=width, mean=mean, minimum=low, maximum=high, held=held, notes=notes)
