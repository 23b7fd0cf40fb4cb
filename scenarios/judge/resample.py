"""Resample a series into equal bins: irregular sampling, gaps, and lasting steps of level."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from scenarios.judge.read import Raw
from scenarios.verdict.cycle import SHORTEST
from scenarios.verdict.types import Floats

MOST_BINS = 20_000
FILL = 4
# A scraped series misses a sample when the next one is later than this many intervals.
GAP_INTERVALS = 2.5
# One that comes later than this many intervals, and no later than a gap, has one sample missing before it.
MISSED_INTERVALS = 1.5
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


def even(raw: Raw, step_s: float | None = None) -> Even:
    """Return the series in equal bins of time-weighted means and extremes.

    Whole numbers (replicas, queue lengths) hold their value until the next sample; others are joined by lines. A
    series sampled at a steady interval may have gaps; one that logs changes only has none.
    """
    t, y = raw.t_s, raw.values
    if len(t) < 2:
        return Even(start_s=0.0, step_s=step_s or 1.0, mean=y, minimum=y, maximum=y, held=True, notes=())
    held = bool(np.all(y == np.round(y)))
    gaps = np.diff(t)
    usual = float(np.median(gaps))
    scraped = float(np.mean(np.abs(gaps - usual) < 0.2 * usual)) > 0.6
    notes: list[str] = []
    if scraped:
        t, y, notes = _without_gaps(t, y, usual)
    else:
        notes.append(f"irregular sampling (median {usual:.4g} s) put into equal bins")
        longest = int(np.argmax(gaps))
        if gaps[longest] > max(HOLE_INTERVALS * usual, HOLE_RATIO * float(t[-1] - t[0])):
            how = "held" if held else "joined by a line"
            notes.append(f"nothing for {gaps[longest]:.4g} s from {t[longest]:.4g} s on: {how}")
    span = float(t[-1] - t[0])
    finest = usual if scraped else max(float(np.quantile(gaps, 0.25)), span / MOST_BINS)
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


def _without_gaps(t: Floats, y: Floats, usual: float) -> tuple[Floats, Floats, list[str]]:
    intervals = np.diff(t) / usual
    lone = int(np.sum((intervals > MISSED_INTERVALS) & (intervals <= GAP_INTERVALS)))
    notes = [f"{_many(lone, 'sample')} missed singly: bridged"] if lone else []
    wide = np.flatnonzero(intervals > GAP_INTERVALS)
    if len(wide) == 0:
        return t, y, notes
    missing = float(np.sum(np.diff(t)[wide])) / float(t[-1] - t[0])
    if missing <= BRIDGED_RATIO:
        return t, y, [*notes, f"{_many(len(wide), 'gap')} ({missing:.1%} of the record) bridged"]
    edges = np.concatenate([[0], wide + 1, [len(t)]])
    longest = int(np.argmax(np.diff(edges)))
    keep = slice(int(edges[longest]), int(edges[longest + 1]))
    start_s, end_s = float(t[keep][0]), float(t[keep][-1])
    lost = f"{_many(len(wide), 'gap')} of {missing:.0%} of the record"
    note = f"{lost}: judged its longest stretch alone, from {start_s:.4g} to {end_s:.4g} s"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change of level that lasted: when, between which levels, how far it overshot, how long it took to settle.

    `overshoot_ratio` is the excess over the new level / the height of the step; `settling_s` None: it never did.
    """

    at_s: float
    before: float
    after: float
    overshoot_ratio: float
    settling_s: float | None


def level_changes(x: Floats) -> list[int]:
    """Return where the level changed for good: at most three places, each cutting the squared error by two thirds.

    Every part must hold a tenth of the record, so that a cycle's own swings are no steps.
    """
    cuts: list[int] = []
    least = max(len(x) // 10, 10)
    for _ in range(3):
        edges = [0, *sorted(cuts), len(x)]
        best, gain_at = 0.0, None
        for low, high in pairwise(edges):
            part = x[low:high]
            if len(part) < 2 * least:
                continue
            total = np.cumsum(part)
            k = np.arange(least, len(part) - least + 1)
            left, right = total[k - 1] / k, (total[-1] - total[k - 1]) / (len(part) - k)
            gain = k * (len(part) - k) / len(part) * (left - right) ** 2
            top = int(np.argmax(gain))
            share = float(gain[top]) / max(float(np.sum((part - part.mean()) ** 2)), 1e-300)
            if share > 2 / 3 and gain[top] > best:
                best, gain_at = float(gain[top]), low + int(k[top])
        if gain_at is None:
            break
        cuts.append(gain_at)
    return sorted(cuts)


def describe_steps(series: Even, cuts: list[int]) -> list[Step]:
    """Return overshoot and settling of each change of level; settled means within 5 % of it or two noise sds."""
    steps = []
    edges = [0, *cuts, len(series.mean)]
    for i, cut in enumerate(cuts):
        before = float(np.median(series.mean[edges[i] : cut][-max((cut - edges[i]) // 2, 1) :]))
        part = series.mean[cut : edges[i + 2]]
        rest = part[len(part) // 2 :]
        after, noise = float(np.median(rest)), float(rest.std())
        height = after - before
        if height == 0:
            continue
        away = (part - after) * np.sign(height)
        outside = np.flatnonzero(np.abs(part - after) > max(0.05 * abs(height), 2 * noise))
        settled = int(outside[-1]) + 1 if len(outside) else 0
        steps.append(
            Step(
                at_s=series.start_s + cut * series.step_s,
                before=before,
                after=after,
                overshoot_ratio=max(float(away.max()) - 2 * noise, 0.0) / abs(height),
                settling_s=settled * series.step_s if settled < len(part) * 0.9 else None,
            )
        )
    return steps


def without_steps(x: Floats, cuts: list[int]) -> Floats:
    """Return the series with each part's own mean taken out and the overall mean put back."""
    flat = x.astype(np.float64).copy()
    edges = [0, *cuts, len(x)]
    for low, high in pairwise(edges):
        flat[low:high] -= x[low:high].mean()
    level: Floats = flat + x.mean()
    return level
