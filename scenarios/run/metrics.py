"""Compute the numbers of a run's summary from its tables. Only the window counts; nothing outside it is averaged.

The window runs from the end of the warm-up to the horizon. Levels are averaged over the bins that lie wholly inside
it; latencies are those of first tokens and of endings inside it; `counts` alone are of the whole run, so that
arrived = retired + rejected + failed + in_flight holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.catalogue import HEADLINE
from scenarios.catalogue.signals import LEVELS, RATES

Floats = NDArray[np.float64]
Window = tuple[float, float]

# A pool under 0.9 N starves; more than a twentieth of the window makes the run starved. A pool over 0.95 N is full.
STARVED_BELOW_RATIO, STARVED_SHARE_RATIO, FULL_RATIO = 0.9, 0.05, 0.95
QUANTILES = {"p50": 0.50, "p90": 0.90, "p99": 0.99}
ENDS = ("rejected", "failed")
NO_WORK = "no work in the judged window"
"""The headline of a run whose window held nothing to judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """The latency objectives of a service class; None: no objective."""

    ttft_s: float | None = None
    tpot_s: float | None = None


def summarize(
    turns: pd.DataFrame,
    signals: pd.DataFrame,
    *,
    window_s: Window,
    endless_work: bool = False,
    objectives: Mapping[str, Objective] | None = None,
) -> dict[str, Any]:
    """Return `flow`, `latency`, `goodput`, `by_class`, `counts` and `window_s` of a run.

    Parameters
    ----------
    turns, signals
        Tables as recorded; `turns` may be empty (a fluid plant), then the counts come from the signals.
    window_s
        First and last second that count.
    endless_work
        The workload keeps turns waiting by construction, so the admission queue says nothing about the pool.
    objectives
        By class; a class that is not named has no objective, and its turns count in no goodput.
    """
    objectives = objectives or {}
    # As categories, a million turns are compared by number.
    turns = turns.assign(**{name: turns[name].astype("category") for name in ("class", "outcome")})
    names = sorted({*objectives, *map(str, turns["class"].cat.categories)})
    by_class = {}
    for name in names:
        turns_of_class = turns[_is(turns["class"], name)]
        by_class[name] = {
            "counts": counts(turns_of_class),
            "latency": latency(turns_of_class, window_s),
            "goodput": goodput(turns_of_class, window_s, objectives),
            "objectives": asdict(objectives.get(name, Objective())),
        }
    return {
        "flow": flow(signals, window_s, endless_work=endless_work),
        "latency": latency(turns, window_s),
        "goodput": goodput(turns, window_s, objectives),
        "by_class": by_class,
        "counts": counts(turns) if len(turns) else fluid_counts(signals),
        "window_s": [float(window_s[0]), float(window_s[1])],
    }


def bins_inside(signals: pd.DataFrame, window_s: Window) -> tuple[NDArray[np.bool_], Floats]:
    """Return which bins lie wholly inside the window, and every bin's width in seconds."""
    start = signals["t_s"].to_numpy(dtype=float)
    if len(start) == 0:
        return np.zeros(0, dtype=bool), np.zeros(0)
    common = start[1] - start[0] if len(start) > 1 else window_s[1] - start[0]
    last = min(common, window_s[1] - start[-1])
    widths = np.append(np.diff(start), last if last > 0 else common)
    slack = 1e-9 * max(1.0, abs(window_s[1]))
    return (start >= window_s[0] - slack) & (start + widths <= window_s[1] + slack), widths


def flow(signals: pd.DataFrame, window_s: Window, *, endless_work: bool = False) -> dict[str, Any]:
    """Return how well the decode pool was kept fed.

    `starved_ratio` is the share of the window, by bins, in which the pool was under 0.9 N while work waited for
    admission. `fed` is `saturated` when the pool is full and work still waits (unless the work is endless by
    construction), `starved` when it starves for more than a twentieth of the window, else `fed`.
    """
    inside, widths = bins_inside(signals, window_s)
    w = widths[inside]
    if not len(w):
        return {"decode_utilization_ratio": None, "starved_ratio": None, "fed": None}

    def column(name: str) -> Floats:
        return signals[name].to_numpy(dtype=float)[inside] if name in signals else np.zeros(len(w))

    def mean(values: NDArray[Any]) -> float:  # floats, or booleans as shares of time
        return float(np.average(values, weights=w))

    occupancy, waits = column(f"{HEADLINE}_mean"), column("backlog_turns_min") > 0
    there = np.isfinite(occupancy)  # while there is no slot, none is used and none is idle
    utilization = float(np.average(occupancy[there], weights=w[there])) if there.any() else None
    starved = mean(~(occupancy >= STARVED_BELOW_RATIO) & waits)
    if (utilization or 0.0) >= FULL_RATIO and mean(waits) > 0.5 and not endless_work:
        word = "saturated"
    else:
        word = "starved" if starved > STARVED_SHARE_RATIO else "fed"
    span = float(w.sum())
    return {
        "decode_utilization_ratio": utilization,
        "starved_ratio": starved,
        "fed": word,
        "backlogged_ratio": mean(waits),
        **{row.name: mean(column(f"{row.name}_mean")) for row in LEVELS if row.unit == "turns"},
        **{name: float(column(count).sum()) / span for name, count in RATES.items()},
    }


def quantiles(values: Floats) -> dict[str, float | None]:
    """Return p50, p90 and p99; None each where there is nothing."""
    if not len(values):
        return dict.fromkeys(QUANTILES)
    values_at = np.quantile(values, list(QUANTILES.values()))
    return {name: float(value) for name, value in zip(QUANTILES, values_at)}


def turn_latencies(turns: pd.DataFrame) -> dict[str, Floats]:
    """Return arrays in seconds, NaN where not defined: TTFT (from arrival, from release), TPOT and E2E of each turn."""
    at = {name: turns[name].to_numpy(dtype=float) for name in ("arrived_s", "released_s", "filled_s", "ended_s")}
    retired = _is(turns["outcome"], "retired")
    gaps = turns["output_tokens"].to_numpy(dtype=float) - 1.0
    between = np.divide(
        at["ended_s"] - at["filled_s"], gaps, out=np.full(len(turns), np.nan), where=retired & (gaps > 0)
    )
    return {
        "ttft_s": at["filled_s"] - at["arrived_s"],
        "ttft_from_release_s": at["filled_s"] - at["released_s"],
        "tpot_s": between,
        "e2e_s": np.where(retired, at["ended_s"] - at["arrived_s"], np.nan),
    }


def latency(turns: pd.DataFrame, window_s: Window) -> dict[str, dict[str, float | None]]:
    """Return quantiles of TTFT over first tokens in the window, of TPOT and E2E over retirements in it."""
    if not len(turns):
        return {name: quantiles(np.empty(0)) for name in ("ttft_s", "ttft_from_release_s", "tpot_s", "e2e_s")}
    first, last = (_within(turns[name], window_s) for name in ("filled_s", "ended_s"))
    return {
        name: quantiles(values[(first if name.startswith("ttft") else last) & ~np.isnan(values)])
        for name, values in turn_latencies(turns).items()
    }


def _is(words: pd.Series[Any], word: str) -> NDArray[np.bool_]:
    return np.array((words == word).to_numpy(), dtype=bool)


def _within(times: pd.Series[float], window_s: Window) -> NDArray[np.bool_]:
    at = times.to_numpy(dtype=float)
    return (at >= window_s[0]) & (at <= window_s[1])


def goodput(turns: pd.DataFrame, window_s: Window, objectives: Mapping[str, Objective]) -> dict[str, float | None]:
    """Return the share, and the rate, of turns ended in the window that met their class's objectives.

    A rejected or failed turn has missed. TTFT counts from arrival; a single-token answer has no TPOT to miss. Turns of
    a class without an objective do not count; where no turn has one, there is no goodput.
    """
    span = window_s[1] - window_s[0]
    promised = {
        name: objective
        for name, objective in objectives.items()
        if (objective.ttft_s, objective.tpot_s) != (None, None)
    }
    if not len(turns) or span <= 0 or not promised:
        return {"ratio": None, "turns_per_s": None}
    counted = np.zeros(len(turns), dtype=bool)
    good = _is(turns["outcome"], "retired")
    times = turn_latencies(turns)
    for name, objective in promised.items():
        of_class = _is(turns["class"], name)
        counted |= of_class
        for limit_s, taken_s in ((objective.ttft_s, times["ttft_s"]), (objective.tpot_s, times["tpot_s"])):
            if limit_s is not None:
                good &= ~(of_class & (taken_s > limit_s))
    counted &= _within(turns["ended_s"], window_s)
    met = int((good & counted).sum())
    return {"ratio": met / int(counted.sum()) if counted.any() else None, "turns_per_s": met / span}


def worked(signals: pd.DataFrame, window_s: Window) -> bool:
    """Tell whether the window held any work: a turn that arrived, waited, was inside or retired."""
    inside, _ = bins_inside(signals, window_s)
    columns = [f"{row.name}_max" for row in LEVELS if row.unit == "turns"] + list(RATES.values())
    return any(bool((signals[name].to_numpy(dtype=float)[inside] > 0.0).any()) for name in columns if name in signals)


def idle(works: bool, window_s: Window, summary: Mapping[str, Any]) -> list[str]:
    """Say why a run without work in its window has no verdict; nothing where there was work."""
    if works:
        return []
    return [
        f"no turn arrived, waited or ran in the judged window, {window_s[0]:.6g} s to {window_s[1]:.6g} s "
        f"({summary['counts']['arrived']:g} arrived in the whole run); a trace that ends before the window, or begins "
        "after it, shows nothing: change horizon_s and warmup_s"
    ]


def counts(turns: pd.DataFrame) -> dict[str, int]:
    """Count the whole run's turns; `in_flight` has arrived and not ended, `waiting` is the part not yet admitted."""
    ends = turns["outcome"].value_counts()
    number = {str(word): int(n) for word, n in ends.items()}
    rejected, failed = (sum(n for word, n in number.items() if word.startswith(f"{end}:")) for end in ENDS)
    retired = number.get("retired", 0)
    return {
        "arrived": len(turns),
        "retired": retired,
        "rejected": rejected,
        "failed": failed,
        "preempted": int(turns["preemptions"].sum()),
        "in_flight": len(turns) - retired - rejected - failed,
        "waiting": number.get("waiting", 0),
    }


def fluid_counts(signals: pd.DataFrame) -> dict[str, float]:
    """Count from the bins of a plant without turns; the numbers need not be integers."""
    total = {
        name: float(signals[name].sum()) if name in signals else 0.0 for name in ("arrived_turns", "retired_turns")
    }
    waiting = float(signals["backlog_turns_mean"].iloc[-1]) if "backlog_turns_mean" in signals and len(signals) else 0.0
    arrived, retired = total["arrived_turns"], total["retired_turns"]
    ended = {"retired": retired, "rejected": 0.0, "failed": 0.0, "preempted": 0.0}
    return {"arrived": arrived, **ended, "in_flight": arrived - retired, "waiting": waiting}


def gpu_hours(worker_seconds: Mapping[str, float], gpus_per_worker: Mapping[str, int]) -> float:
    """Return GPU-hours paid for, from the seconds that workers of each configuration existed."""
    return sum(seconds * gpus_per_worker[name] for name, seconds in worker_seconds.items()) / 3600.0
