"""Progress of a run for a progress bar: simulated time, turns and speed, sent at equal steps of simulated time."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.ledger import Ledger

STEPS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Simulated time, retired turns and speed of a run that is under way."""

    now_s: float
    horizon_s: float
    retired: int
    turns_per_wall_s: float


def watch(clock: Any, ledger: Ledger, horizon_s: float, notify: Callable[[Progress], None]) -> None:
    """Call `notify` two hundred times over the horizon. Any: one of the clocks."""
    began = time.perf_counter()  # wall-clock: the speed shown to a person

    def step(k: int) -> None:
        spent_s = time.perf_counter() - began  # wall-clock: as above
        notify(
            Progress(
                now_s=clock.now(),
                horizon_s=horizon_s,
                retired=ledger.retired,
                turns_per_wall_s=ledger.retired / spent_s if spent_s > 0.0 else 0.0,
            )
        )
        clock.at((k + 1) * horizon_s / STEPS, step, k + 1)

    clock.at(0.0, step, 0)
