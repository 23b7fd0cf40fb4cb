"""Lasting changes of level in a series: found, described, and taken out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from scenarios.judge.resample import Even
from scenarios.verdict.types import Floats


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
