"""Nulls and cycles by formula, a family a name: red noise, reflected walks, slow waves, pools in small steps; the power
curve. A family's generator depends on its name and the seed alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from scenarios.catalogue.verdict import SignalVerdict
from scenarios.verdict import known_signals as known
from scenarios.verdict.classify import judge_signal
from scenarios.verdict.types import Floats, Series

# Not the seed under which the thresholds were chosen, so that these series had no part in that choice.
SEED = 20261201
ROWS, BINS, STEP_S = 60, 4000, 0.25
# A null may be steady or constant; undecided is no alarm either, but it is counted separately.
ALARMS = frozenset({"unbounded", "driven", "echo", "limit_cycle", "quasi_cycle", "ringing"})
POOLS = {
    "pool_poisson_512_at_0.8": (known.Pool(slots=512, residence_s=5, dead_time_s=1), 0.8),
    "pool_poisson_64_at_0.9": (known.Pool(slots=64, residence_s=5, dead_time_s=1), 0.9),
    "pool_erlang4_64_at_0.9": (known.Pool(slots=64, residence_s=5, dead_time_s=1, stages=4), 0.9),
    "pool_poisson_16_at_0.8": (known.Pool(slots=16, residence_s=5, dead_time_s=1), 0.8),
}
AMPLITUDES, PERIODS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0), (12, 15, 20, 40)


def nulls(rows: int, bins: int = BINS) -> Iterator[tuple[str, list[Series]]]:
    """Yield families of series that hold no cycle of their own; a family's generator depends on its name alone."""
    generators = {f"ar1_phi_{phi}": partial(known.red_noise, phi=phi) for phi in (0.9, 0.98, 0.995)}
    generators |= {f"reflected_walk_{load}": partial(known.reflected_walk, load=load) for load in (0.8, 0.95)}
    generators |= {f"diurnal_ar1_{phi}": partial(known.diurnal, phi=phi) for phi in (0.9, 0.98)}
    for name, make in generators.items():
        x = make(rng_of(name), rows, bins)
        # Scaled so that the effect floors do not decide: a swing is measured against three standard deviations.
        stock = name.startswith("reflected")
        yield name, [Series(name=name, step_s=STEP_S, mean=y, scale=3 * float(y.std()), stock=stock) for y in x]
    for name, (pool, load) in POOLS.items():
        yield name, pool_nulls(name, pool, load, rows, bins)


def pool_nulls(name: str, pool: known.Pool, load: float, rows: int, bins: int) -> list[Series]:
    """Return occupancy, ready buffer and retirements of open pools under Poisson arrivals."""
    n, full = pool.slots, pool.slots / pool.residence_s
    pools = known.run_pool(
        pool,
        known.Control(law="open", base_per_s=load * full),
        rng=rng_of(name),
        rows=rows,
        warmup_s=20 * pool.residence_s,
        window_s=bins * STEP_S,
    )
    series = [
        Series(name="busy", step_s=STEP_S, mean=x / n, minimum=a / n, maximum=b / n, scale=1.0, one_turn=1 / n)
        for x, a, b in zip(pools.busy, pools.busy_min, pools.busy_max)
    ]
    series += [Series(name="ready", step_s=STEP_S, mean=x, scale=n, stock=True, one_turn=1.0) for x in pools.ready]
    return series + [
        Series(name="retired", step_s=STEP_S, mean=x, scale=full, one_turn=1 / STEP_S, flow=True)
        for x in pools.retired_per_s
    ]


def cycles(rows: int) -> Iterator[tuple[str, str, float, list[Series]]]:
    """Yield (family, word, period in seconds, series) of noisy waves whose period is exact."""
    t = np.arange(BINS) * STEP_S
    for period in (3.7, 11.3, 33.4, 81.0):
        for name, shape in SHAPES.items():
            rng = rng_of(f"{name} {period}")
            phase = (t / period + rng.uniform(size=(rows, 1))) % 1.0
            noise = known.red_noise(rng, rows, BINS, 0.9) * np.sqrt(1 - 0.9**2)
            wave = 0.5 * shape(phase) + 0.25 * noise
            yield f"{name}_{period}s", "limit_cycle", period, [_plain(x, 1.0) for x in wave]
    pool = known.Pool(slots=512, residence_s=10, dead_time_s=10, stages=100)
    ring = known.ring(rng_of("ring"), rows=rows, members=512, pool=pool, window_s=1000)
    yield "ring_erlang_100", "echo", 20.0, [_plain(x / 512, 1.0) for x in ring.busy]


SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "sine": lambda p: np.sin(2 * np.pi * p),
    "square": lambda p: np.where(p < 0.4, 1.0, -1.0),
    "sawtooth": lambda p: 2 * p - 1,
    "relay": lambda p: np.where(p < 0.5, 1 - 2 * np.exp(-6 * p), 2 * np.exp(-6 * (p - 0.5)) - 1),
}


def power(rows: int) -> list[dict[str, float]]:
    """Return the share of sines found in red noise (phi 0.9), by amplitude over the noise's sd and by periods."""
    shares = []
    for periods in PERIODS:
        for amplitude in AMPLITUDES:
            rng = rng_of(f"power {periods} {amplitude}")
            noise = known.red_noise(rng, rows, 2000, 0.9) * np.sqrt(1 - 0.9**2)
            phase = 2 * np.pi * (rng.uniform(size=(rows, 1)) + np.arange(2000) * periods / 1999)
            words = [judge_signal(_plain(x, 3.0)).verdict for x in noise + amplitude * np.sin(phase)]
            share = sum(word in ("limit_cycle", "quasi_cycle") for word in words) / rows
            shares.append({"periods": periods, "amplitude_over_sd": amplitude, "found_ratio": share})
    return shares


def _plain(x: Floats, scale: float) -> Series:
    return Series(name="x", step_s=STEP_S, mean=x, scale=scale)


def rng_of(name: str) -> np.random.Generator:
    """Return the generator of a name."""
    digest = hashlib.sha256(name.encode()).digest()
    return np.random.default_rng([SEED, int.from_bytes(digest[:8], "big")])


def null_row(family: list[Series]) -> dict[str, float]:
    """Return how often a family of nulls raised an alarm or stayed undecided."""
    words = Counter(judge_signal(null).verdict for null in family)
    alarms = sum(count for word, count in words.items() if word in ALARMS)
    return {"series": len(family), "false_alarms": alarms, "undecided": words["undecided"]}


def cycle_row(word: str, period_s: float, family: list[Series]) -> dict[str, float]:
    """Return how many of a family were found, how many with the right verdict, and the worst period.

    A wave in noise over a dozen periods may be read as kept up by that noise: it is found all the same.
    """
    echo = word == "echo"
    flows = [series.mean for series in family] if echo else [None] * len(family)
    verdicts: list[SignalVerdict] = [
        # In a ring what leaves decode is admitted at once, so any one series stands for both flows.
        judge_signal(series, transit_s=period_s if echo else None, admissions=flow, retirements=flow)
        for series, flow in zip(family, flows)
    ]
    errors = [abs((verdict.period_s or np.inf) / period_s - 1) for verdict in verdicts]
    hits, named = sum(verdict.oscillates for verdict in verdicts), sum(verdict.verdict == word for verdict in verdicts)
    return {"series": len(family), "found": hits, "named": named, "worst_period_error_ratio": short(max(errors))}


def short(value: float) -> float:
    """Return a number to three digits, for the table."""
    return float(f"{value:.3g}")
