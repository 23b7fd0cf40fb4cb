"""The noise-free flow through a pipeline and a pool of slots, with residence of any shape, under any admission law.

    y(t)      = mean over i of u(t - L_i)                          turns/s, what reaches decode
    x(t)      = integral of j(t - a) S(a) da                       busy slots; S: survival of the residence
    j(t)      = y(t) while slots are free, else what keeps x = N   turns/s, what joins
    db/dt     = y(t) - j(t)                                        the hand-off buffer
    dq/dt     = arrivals - u(t)                                    the backlog; endless where arrivals is None

The law reads the state as it was `age_s` ago at the latest sample, and acts every `period_s`. Exact but for the step:
each residence and each dead time is shared between two whole steps so that its mean is kept. What the pool remembers
(bunches of a fixed residence) depends on the start; here, as in a run, everything begins empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf

import numpy as np
from numpy.typing import NDArray

from policies.design.residence import EXPONENTIAL, Shape, step_weights

Floats = NDArray[np.float64]
STEPS, MOST_STEPS = 100, 400_000
"""Steps in the shorter of residence and pipeline; in a whole flow at most."""
FINE, BLOCK = 8.0, 32
"""Mean residences that are looked back on step by step, and the steps in a block beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowPlant:
    """What the flow passes.

    `dead_times_s`: at equally spaced ranks of turns. `ceiling_per_s`: most that is released. `arrivals_per_s` None:
    work always waits. `loaded_residence_s`: mean residence in an empty and in a full pool, where turns slow each other
    down (None: it is `residence_s` at any load).
    """

    slots: float
    residence_s: float
    dead_times_s: Sequence[float]
    ceiling_per_s: float
    shape: Shape = EXPONENTIAL
    arrivals_per_s: float | None = None
    backlog_turns: float = 0.0
    loaded_residence_s: tuple[float, float] | None = None


@dataclass(slots=True)
class State:
    """Levels and totals in turns at `at_s`, as a law reads them."""

    at_s: float
    backlog: float
    filling: float
    ready: float
    busy: float
    arrived: float
    released: float
    retired: float


@dataclass(frozen=True, slots=True)
class Release:
    """What a law commands: a rate (inf: the most there is) and a cap on the turns in flight (inf: none)."""

    rate_per_s: float = inf
    cap_turns: float = inf


Law = Callable[[float, State], Release]
"""Called with the time and what the law reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How late and how often a law sees and acts: age and period of the samples (0: live), period of its acts."""

    age_s: float = 0.0
    sample_s: float = 0.0
    period_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """The flow at each step: turns, and turns released in it."""

    step_s: float
    busy: Floats
    ready: Floats
    filling: Floats
    backlog: Floats
    released: Floats

    def after(self, start_s: float) -> Path:
        """Return the part from `start_s` on."""
        k = min(round(start_s / self.step_s), len(self.busy) - 1)
        return Path(
            step_s=self.step_s,
            busy=self.busy[k:],
            ready=self.ready[k:],
            filling=self.filling[k:],
            backlog=self.backlog[k:],
            released=self.released[k:],
        )


def step_of(plant: FlowPlant, timing: Timing, horizon_s: float) -> float:
    """Return a step that divides the law's period and resolves residence and pipeline."""
    pipeline_s = float(np.mean(plant.dead_times_s))
    spans = [plant.residence_s, *([pipeline_s] if pipeline_s > 0 else [])]
    wanted = max(min(spans) / STEPS, horizon_s / MOST_STEPS)
    base = timing.period_s or timing.sample_s
    if base <= 0.0:
        return wanted
    return base / ceil(base / wanted) if base >= wanted else base * max(round(wanted / base), 1)


def integrate(plant: FlowPlant, law: Law, timing: Timing, horizon_s: float, step_s: float | None = None) -> Path:
    """Return the flow from an empty start to `horizon_s` under a law."""
    h = step_of(plant, timing, horizon_s) if step_s is None else step_s
    count = int(horizon_s / h)
    travel = _travel(plant.dead_times_s, h)
    pool = _Loaded(plant, h, count) if plant.loaded_residence_s is not None else _Pool(plant, h, count)
    size = len(travel)
    sent = np.zeros(count + size)
    columns = np.zeros((4, count))
    every, sample = max(round(timing.period_s / h), 1), max(round(timing.sample_s / h), 0)
    age = round(timing.age_s / h)
    # The samples that a law may still read, the oldest first.
    history: deque[State] = deque(maxlen=age + 1 if sample == 0 else age // sample + 2)
    now = State(0.0, plant.backlog_turns, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    command = Release()
    for k in range(count):
        if sample == 0 or k % sample == 0:
            history.append(replace(now, at_s=k * h))
        if k % every == 0:
            newer = 0 if sample == 0 else k // sample - max((k - age) // sample, 0)
            command = law(k * h, history[0] if sample == 0 else history[-1 - newer])
        room = max(command.cap_turns - (now.filling + now.ready + now.busy), 0.0)
        released = min(command.rate_per_s, plant.ceiling_per_s) * h
        arrived = released = min(released, room)
        if plant.arrivals_per_s is not None:
            arrived = plant.arrivals_per_s * h
            released = min(released, now.backlog + arrived)
        sent[k + size] = released
        landed = float(sent[k + 1 : k + size + 1] @ travel)
        staying = pool.staying(k)
        now.retired += now.busy - staying
        ready = now.ready + landed
        joining = min(ready, plant.slots - staying)
        pool.join(k, joining)
        now.backlog = now.backlog + arrived - released if plant.arrivals_per_s is not None else plant.backlog_turns
        now.filling += released - landed
        now.ready, now.busy = ready - joining, staying + joining
        now.arrived += arrived
        now.released += released
        columns[:, k] = now.busy, now.ready, now.filling, now.backlog
    return Path(
        step_s=h, busy=columns[0], ready=columns[1], filling=columns[2], backlog=columns[3], released=sent[size:]
    )


class _Pool:
    """Busy slots of a residence that no load changes: those that end in a step are a weighted sum of past joinings.

    Joinings older than `FINE` mean residences are summed in blocks, each with the mean weight of its steps.
    """

    def __init__(self, plant: FlowPlant, step_s: float, count: int) -> None:
        weights = step_weights(plant.shape, plant.residence_s, step_s)
        used = np.flatnonzero(weights > 1e-15)
        # A fixed residence ends in one or two steps; all the others before them need no sum.
        self._first, last = int(used[0]), int(used[-1]) + 1
        self._fine = min(last, max(round(FINE * plant.residence_s / step_s), self._first + 1))
        rows = [_means(weights[self._fine + phase : last]) for phase in range(BLOCK)]
        blocks = max(len(row) for row in rows)
        self._coarse = np.array([np.pad(row, (0, blocks - len(row)))[::-1] for row in rows])
        self._weights = np.pad(weights[:last], (0, BLOCK))[self._first : self._fine + BLOCK][::-1].copy()
        # Both start far enough before the first step that every sum is over a whole slice.
        self._pad, self._blocks = -(-(self._fine + BLOCK) // BLOCK) * BLOCK, blocks
        self._joined = np.zeros(self._pad + count)
        self._sums = np.zeros(blocks + self._pad // BLOCK + count // BLOCK + 2)
        self._busy = 0.0

    def staying(self, k: int) -> float:
        at = k + self._pad
        edge = (at - self._fine) // BLOCK
        phase = at - self._fine - edge * BLOCK
        recent = self._joined[edge * BLOCK : at - self._first]
        ending = float(recent @ self._weights[-len(recent) :]) if len(recent) else 0.0
        if self._blocks:
            ending += float(self._sums[edge : edge + self._blocks] @ self._coarse[phase])
        self._busy -= ending
        return self._busy

    def join(self, k: int, turns: float) -> None:
        at = k + self._pad
        self._joined[at] = turns
        self._sums[self._blocks + at // BLOCK] += turns
        self._busy += turns


def _means(weights: Floats) -> Floats:
    padded_samples = -(-len(weights) // BLOCK) * BLOCK
    return np.asarray(np.pad(weights, (0, padded_samples - len(weights))).reshape(-1, BLOCK).mean(axis=1))


class _Loaded:
    """Busy slots of turns that slow each other down: each step ages all of them by h / T(x)."""

    def __init__(self, plant: FlowPlant, step_s: float, count: int) -> None:
        assert plant.loaded_residence_s is not None
        self._empty_s, full_s = plant.loaded_residence_s
        self._slope = (full_s - self._empty_s) / plant.slots
        self._step_s = step_s
        ages = np.linspace(0.0, plant.shape.longest_ratio(), 4001)
        excess = plant.shape.excess(ages)
        self._survival = np.concatenate([[1.0], -np.diff(excess) / np.diff(ages)])
        self._ages_at = np.concatenate([[0.0], (ages[1:] + ages[:-1]) / 2])
        self._clock = np.zeros(count + 1)
        self._joined = np.zeros(count + 1)
        self._now = self._busy = 0.0
        self._oldest = 0

    def staying(self, k: int) -> float:
        self._now += self._step_s / (self._empty_s + self._slope * self._busy)
        while self._oldest < k and self._now - self._clock[self._oldest] > self._ages_at[-1]:
            self._oldest += 1
        ages = self._now - self._clock[self._oldest : k]
        self._busy = float(self._joined[self._oldest : k] @ np.interp(ages, self._ages_at, self._survival))
        return self._busy

    def join(self, k: int, turns: float) -> None:
        self._clock[k], self._joined[k] = self._now, turns
        self._busy += turns


def _travel(dead_times_s: Sequence[float], step_s: float) -> Floats:
    """Return the share of turns that take each number of steps, the longest first, with their mean kept."""
    ranks = (np.arange(len(dead_times_s)) + 0.5) / len(dead_times_s)
    fine = np.interp((np.arange(1000) + 0.5) / 1000, ranks, sorted(dead_times_s)) / step_s
    steps = np.floor(fine + 1e-9).astype(int)
    part = np.maximum(fine - steps, 0.0)
    counts = np.bincount(steps, 1 - part, int(steps.max()) + 2) + np.bincount(steps + 1, part, int(steps.max()) + 2)
    share = np.trim_zeros(np.where(counts > 1e-12, counts, 0.0), "b") / 1000.0
    return np.asarray(share[::-1], dtype=np.float64).copy()
