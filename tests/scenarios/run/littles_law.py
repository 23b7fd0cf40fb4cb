"""Little's law measured on a run's turns: the number in a stage against rate times stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

STAGES = {
    "waiting": ("arrived_s", "released_s"),
    "filling": ("released_s", "filled_s"),
    "ready": ("filled_s", "joined_s"),
    "decoding": ("joined_s", "ended_s"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Little:
    """Both sides of Little's law for one stage: the time-mean number, and rate x mean stay."""

    number_turns: float
    rate_per_s: float
    stay_s: float

    @property
    def gap_ratio(self) -> float:
        """How far rate x stay is from the number, as a share of the number; NaN for an empty stage."""
        return self.rate_per_s * self.stay_s / self.number_turns - 1.0 if self.number_turns else float("nan")


def little(turns: pd.DataFrame, stage: str, window_s: tuple[float, float]) -> Little:
    """Measure Little's law on `waiting`, `filling`, `ready` or `decoding` over the window.

    The number is the exact integral of presence over the window; rate and stay are those of turns that entered the
    stage in it and have left it, so the gap is an end effect that falls with stay / window.
    """
    enter, leave = (turns[name].to_numpy(dtype=float) for name in STAGES[stage])
    # A turn that never left the stage for the next one leaves it where it ended (rejected, failed), or never.
    gone = np.where(np.isnan(leave), turns["ended_s"].to_numpy(dtype=float), leave)
    present = ~np.isnan(enter)
    until = np.where(np.isnan(gone), window_s[1], gone)
    overlap = np.clip(np.minimum(until, window_s[1]) - np.maximum(enter, window_s[0]), 0.0, None)
    entered = present & (enter >= window_s[0]) & (enter < window_s[1])
    stays = (gone - enter)[entered & ~np.isnan(gone)]
    span = window_s[1] - window_s[0]
    return Little(
        number_turns=float(overlap[present].sum()) / span,
        rate_per_s=int(entered.sum()) / span,
        stay_s=float(stays.mean()) if len(stays) else float("nan"),
    )
