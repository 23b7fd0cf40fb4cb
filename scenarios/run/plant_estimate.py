"""Estimate a plant from a run of it, in the terms of the theory: slots, dead time, residence and their ratio."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

RANKS = 20
"""How many dead times represent all: a gate's predicted period differs by 2 % from that of 40."""


def estimated_plant(turns: pd.DataFrame, signals: pd.DataFrame, window_s: tuple[float, float]) -> dict[str, Any] | None:
    """Return the plant as seen by the turns that retired in the window; None where none did.

    Parameters
    ----------
    turns, signals : DataFrame
        The run's record.
    window_s : (float, float)
        From and to, seconds.

    Returns
    -------
    dict
        `slots` (mean), `dead_time_s` (release to first token, mean), `dead_times_s` (the same of the turns at `RANKS`
        equally spaced ranks, from the quickest to the slowest), `residence_s` (joining the batch to the last
        token, mean), `residences_s` (the mean of each of `RANKS` equal groups of turns, from the quickest to the
        slowest), `dead_time_ratio` (their quotient), `arrival_per_s`, and `backlogged_ratio`: the share of the
        window's bins in which work waited for admission throughout.
    """
    if not len(turns) or window_s[1] <= window_s[0]:  # the source may run dry before the warm-up is over
        return None
    ended = turns["ended_s"].to_numpy(dtype=float)
    inside = (ended >= window_s[0]) & (ended <= window_s[1]) & (turns["outcome"] == "retired").to_numpy()
    if not inside.any():
        return None
    of = {name: turns[name].to_numpy(dtype=float)[inside] for name in ("released_s", "filled_s", "joined_s", "ended_s")}
    dead_times_s = of["filled_s"] - of["released_s"]
    dead_s = float(np.nanmean(dead_times_s))
    stays_s = of["ended_s"] - of["joined_s"]
    residence_s = float(np.nanmean(stays_s))
    bins = signals[(signals["t_s"] >= window_s[0]) & (signals["t_s"] < window_s[1])]
    arrived = turns["arrived_s"].to_numpy(dtype=float)
    arrivals = int(((arrived >= window_s[0]) & (arrived < window_s[1])).sum())
    return {
        "slots": float(bins["slots"].mean()) if "slots" in bins and len(bins) else float("nan"),
        "dead_time_s": dead_s,
        "dead_times_s": np.nanquantile(dead_times_s, (np.arange(RANKS) + 0.5) / RANKS).tolist(),
        "residence_s": residence_s,
        "residences_s": _groups(stays_s),
        "dead_time_ratio": dead_s / residence_s if residence_s > 0.0 else float("nan"),
        "arrival_per_s": arrivals / (window_s[1] - window_s[0]),
        "backlogged_ratio": float((bins["backlog_turns_min"] > 0).mean()) if len(bins) else 0.0,
    }


def _groups(values: NDArray[np.float64]) -> list[float]:
    """Return the means of equal groups of sorted values, which together keep the mean; fewer where values are few."""
    known = np.sort(values[np.isfinite(values)])
    return [float(group.mean()) for group in np.array_split(known, min(RANKS, len(known)))] if len(known) else []
