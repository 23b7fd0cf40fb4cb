"""How long a run takes to recover from its faults: the settling time of the number of turns inside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from scenarios.schema.faults import Fault, TelemetryFault
from scenarios.schema.plants import ClusterPlant
from scenarios.schema.scenario import Scenario

BAND_RATIO = 1.25
"""Turns inside are back within their greatest number before the faults, times this factor, plus one turn."""
Span = tuple[float, float]


def fault_spans(scenario: Scenario) -> list[Span]:
    """Return begin and end of every fault, math.inf where it stays."""
    plant = scenario.plant
    faults: list[Fault | TelemetryFault] = list(scenario.telemetry.faults)
    faults += plant.faults if isinstance(plant, ClusterPlant) else ()
    return [
        (f.at_s, math.inf if f.for_s is None else f.at_s + f.for_s + (f.back_s if f.kind == "poisoned" else 0.0))
        for f in faults
    ]


def recovery(signals: pd.DataFrame, spans: Sequence[Span], warmup_s: float, end_s: float) -> dict[str, Any] | None:
    """Return what the faults did to the number of turns inside (waiting or in flight); None without faults.

    `recovery_s` is the time from the end of the last fault (its begin, where it stays) to the last instant at which
    more turns are inside than `BAND_RATIO` x the most before the first fault; None where they are so at the end.
    """
    spans = [span for span in spans if span[0] < end_s]
    if not spans or not len(signals) or "backlog_turns_mean" not in signals:
        return None
    first_s = min(start for start, _ in spans)
    last_s = max(start if end > end_s else end for start, end in spans)
    at_s = signals["t_s"].to_numpy(dtype=float)
    inside = (signals["backlog_turns_mean"] + signals["in_flight_turns_mean"]).to_numpy(dtype=float)
    before = inside[(at_s >= min(warmup_s, first_s)) & (at_s < first_s)]
    usual = float(before.max()) if len(before) else 0.0
    after = at_s >= last_s
    out = np.flatnonzero(after & (inside > BAND_RATIO * usual + 1.0))
    ends_s = np.append(at_s[1:], end_s)
    back_s = 0.0 if not len(out) else float(ends_s[out[-1]]) - last_s
    returned = not len(out) or out[-1] != len(at_s) - 1
    return {
        "faults": len(spans),
        "last_s": last_s,
        "usual_turns": usual,
        "worst_turns": float(inside[at_s >= first_s].max()) if (at_s >= first_s).any() else None,
        "recovery_s": back_s if returned else None,
    }
