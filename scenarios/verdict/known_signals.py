"""Series whose verdict is known: red noise, queues and open pools that must not be called cycles, and loops that must.

Everything runs in rows at once, so that a thousand series cost seconds. The pools are simulated in small steps with
binomial departures and Poisson arrivals; `noise=False` gives the same loop as a fluid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import signal

from scenarios.verdict.acf import rebin
from scenarios.verdict.types import Floats

Rng = np.random.Generator
Law = Literal["relay", "proportional", "one_for_one"]


def red_noise(rng: Rng, rows: int, n: int, phi: float) -> Floats:
    """Return AR(1) noise of unit innovation, shape (rows, n), from its stationary law."""
    noise = rng.standard_normal((rows, n))
    noise[:, 0] /= np.sqrt(1 - phi**2)
    return np.asarray(signal.lfilter([1.0], [1.0, -phi], noise, axis=1))


def reflected_walk(rng: Rng, rows: int, n: int, load: float) -> Floats:
    """Return waiting times of a single server at this load (Lindley's recursion), shape (rows, n), warmed up."""
    warm = int(20 / (1 - load) ** 2)
    step = rng.exponential(load, (rows, n + warm)) - rng.exponential(1.0, (rows, n + warm))
    path = np.cumsum(step, axis=1)
    floor = np.minimum.accumulate(np.minimum(path, 0.0), axis=1)
    return np.asarray((path - floor)[:, warm:])


def diurnal(rng: Rng, rows: int, n: int, phi: float) -> Floats:
    """Return a slow wave of one to four periods in the record, plus AR(1) noise of a third to thrice its size."""
    waves = rng.uniform(1.0, 4.0, (rows, 1))
    phase = rng.uniform(0.0, 2 * np.pi, (rows, 1))
    size = rng.uniform(0.3, 3.0, (rows, 1))
    noise = red_noise(rng, rows, n, phi) * np.sqrt(1 - phi**2)
    wave: Floats = np.sin(2 * np.pi * waves * np.arange(n) / n + phase)
    result: Floats = wave + size * noise
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A decode pool behind a dead time: N slots, mean residence T, Erlang stages (1: exponential), dead time L."""

    slots: int
    residence_s: float
    dead_time_s: float = 0.0
    stages: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """Bin records of a pool, each of shape (rows, bins): busy slots (mean and extremes), ready turns, flows."""

    step_s: float
    busy: Floats
    busy_min: Floats
    busy_max: Floats
    ready: Floats
    admitted_per_s: Floats
    retired_per_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """How the front door behaves.

    `relay`: rate `ceiling_per_s` while open; opens at or below `low` busy slots, closes at or above `high`.
    `proportional`: rate clip(base + gain (setpoint - turns at decode), 0, ceiling). `one_for_one`: a release for each
    retirement. `open`: Poisson at `base_per_s` whatever happens.
    """

    law: Law | Literal["open"]
    ceiling_per_s: float = 0.0
    low: float = 0.0
    high: float = 0.0
    base_per_s: float = 0.0
    gain_per_s: float = 0.0
    setpoint: float = 0.0


def run_pool(
    pool: Pool,
    control: Control,
    *,
    rng: Rng,
    rows: int,
    warmup_s: float,
    window_s: float,
    bin_s: float = 0.25,
    dt_s: float = 0.05,
    start_turns: float = 0.0,
    noise: bool = True,
) -> Bins:
    """Simulate `rows` copies of a pool and its front door and return bins of the window after the warm-up.

    `start_turns` are at decode at time 0 (at the head of their residence), the dead time being empty.
    """
    steps, skip = round((warmup_s + window_s) / dt_s), round(warmup_s / dt_s)
    delay = round(pool.dead_time_s / dt_s)
    pipe = np.zeros((max(delay, 1), rows))
    phases = np.zeros((pool.stages, rows))
    phases[0] = min(start_turns, pool.slots)
    ready = np.full(rows, max(start_turns - pool.slots, 0.0))
    leave = -np.expm1(-dt_s * pool.stages / pool.residence_s)
    kept = np.zeros((4, steps - skip, rows))
    is_open, retired = np.ones(rows), np.zeros(rows)
    for i in range(steps):
        busy = phases.sum(axis=0)
        rate, is_open = _release(control, busy, ready, is_open, retired / dt_s)
        released = rng.poisson(rate * dt_s) if noise and control.law != "one_for_one" else rate * dt_s
        arrived = pipe[i % delay].copy() if delay else released
        if delay:
            pipe[i % delay] = released
        moved = [rng.binomial(stage.astype(np.int64), leave) if noise else stage * leave for stage in phases]
        for k, out in enumerate(moved):
            phases[k] -= out
            if k + 1 < pool.stages:
                phases[k + 1] += out
        retired = np.asarray(moved[-1], dtype=np.float64)
        ready += arrived
        joined = np.minimum(ready, pool.slots - phases.sum(axis=0))
        ready -= joined
        phases[0] += joined
        if i >= skip:
            kept[:, i - skip] = phases.sum(axis=0), ready, released, retired
    return _binned(kept, round(bin_s / dt_s), dt_s)


def _release(
    control: Control, busy: Floats, ready: Floats, is_open: Floats, retired_per_s: Floats
) -> tuple[Floats, Floats]:
    if control.law == "one_for_one":
        return retired_per_s, is_open
    if control.law == "open":
        return np.full_like(busy, control.base_per_s), is_open
    if control.law == "relay":
        now = np.where(busy <= control.low, 1.0, np.where(busy >= control.high, 0.0, is_open))
        return control.ceiling_per_s * now, now
    wanted = control.base_per_s + control.gain_per_s * (control.setpoint - busy - ready)
    return np.clip(wanted, 0.0, control.ceiling_per_s), is_open


def _binned(kept: Floats, factor: int, dt_s: float) -> Bins:
    busy, ready, released, retired = (np.ascontiguousarray(part.T) for part in kept)
    full = busy.shape[1] // factor * factor
    grouped = busy[:, :full].reshape(len(busy), -1, factor)
    return Bins(
        step_s=factor * dt_s,
        busy=rebin(busy, factor),
        busy_min=np.asarray(grouped.min(axis=2)),
        busy_max=np.asarray(grouped.max(axis=2)),
        ready=rebin(ready, factor),
        admitted_per_s=rebin(released, factor) / dt_s,
        retired_per_s=rebin(retired, factor) / dt_s,
    )


def ring(
    rng: Rng, *, rows: int, members: int, pool: Pool, window_s: float, bin_s: float = 0.25, jitter_cv: float = 0.0
) -> Bins:
    """Return a closed ring of members that start together: dead time, residence, and round again at once.

    Residence is Erlang (`stages`), or lognormal with `jitter_cv`, or fixed when `stages` is 0. Slots never run out, so
    members are independent and no time step is needed: an admission is a retirement.
    """
    laps = int(window_s / pool.dead_time_s) + 1
    if jitter_cv > 0:
        sigma = np.sqrt(np.log1p(jitter_cv**2))
        residence = pool.residence_s * rng.lognormal(-(sigma**2) / 2, sigma, (rows, members, laps))
    elif pool.stages == 0:
        residence = np.full((rows, members, laps), pool.residence_s)
    else:
        residence = rng.gamma(pool.stages, pool.residence_s / pool.stages, (rows, members, laps))
    ends = np.cumsum(residence + pool.dead_time_s, axis=2).reshape(rows, -1)
    starts = ends - residence.reshape(rows, -1)
    edges = np.arange(round(window_s / bin_s) + 1) * bin_s
    joined = np.array([np.searchsorted(np.sort(row), edges) for row in starts])
    left = np.array([np.searchsorted(np.sort(row), edges) for row in ends])
    busy = (joined - left).astype(np.float64)
    flow = np.diff(left, axis=1) / bin_s
    low, high = np.minimum(busy[:, 1:], busy[:, :-1]), np.maximum(busy[:, 1:], busy[:, :-1])
    return Bins(
        step_s=bin_s,
        busy=(low + high) / 2,
        busy_min=low,
        busy_max=high,
        ready=np.zeros_like(low),
        admitted_per_s=flow,
        retired_per_s=flow,
    )
