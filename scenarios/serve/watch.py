"""The verdict while a server runs: the judge over the last minutes, and an alarm when a cycle begins or stops."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from orchestrator.recorder import Sink
from scenarios.verdict import SignalVerdict
from scenarios.verdict.run import judge_run

Floats = NDArray[np.float64]
WINDOW_S = 600.0  # of the run
LEAST_BINS = 40
AGREEING = 2  # judgements in a row that make an alarm: one may be a chance


class RecentSignals:
    """A `Sink` that passes everything on, and keeps bins and first tokens of the last `WINDOW_S`.

    Attributes
    ----------
    version : int
        Another number whenever what is kept has changed.
    """

    def __init__(self, sink: Sink) -> None:
        self.event = sink.event
        self.version = 0
        self._sink = sink
        self._blocks: deque[pd.DataFrame] = deque()
        self._firsts: deque[tuple[Floats, Floats]] = deque()

    def turns(self, columns: Mapping[str, NDArray[Any]], classes: Sequence[str], outcomes: Sequence[str]) -> None:
        """Pass on some turns."""
        self._sink.turns(dict(columns), classes, outcomes)
        self.version += 1
        filled = ~np.isnan(columns["filled_s"])
        if not filled.any():
            return
        at_s = columns["filled_s"][filled]
        self._firsts.append((at_s, at_s - columns["arrived_s"][filled]))
        newest_s = float(columns["ended_s"].max())  # a block's turns have all ended: no later block is older
        while float(self._firsts[0][0].max()) < newest_s - WINDOW_S:
            self._firsts.popleft()

    def signals(self, columns: Mapping[str, Sequence[float]]) -> None:
        """Pass on some bins."""
        self._sink.signals(columns)
        block = pd.DataFrame({name: np.asarray(values, dtype=float) for name, values in columns.items()})
        self.version += 1
        self._blocks.append(block)
        while self._blocks[0]["t_s"].iloc[-1] < block["t_s"].iloc[-1] - WINDOW_S:
            self._blocks.popleft()

    def recent(self) -> pd.DataFrame:
        """Return the bins that are kept."""
        return pd.concat(self._blocks, ignore_index=True) if self._blocks else pd.DataFrame({"t_s": []})

    def column(self, name: str) -> Floats:
        """Return one column of the bins that are kept; NaN where a block lacks it."""
        blocks = [
            block[name].to_numpy(dtype=float) if name in block else np.full(len(block), np.nan)
            for block in self._blocks
        ]
        return np.concatenate(blocks) if blocks else np.zeros(0)

    def first_tokens(self) -> tuple[Floats, Floats]:
        """Return instants and seconds from arrival of the first tokens that are kept."""
        if not self._firsts:
            return np.zeros(0), np.zeros(0)
        return np.concatenate([at for at, _ in self._firsts]), np.concatenate([took for _, took in self._firsts])


class RunningVerdict:
    """The last judgement of each signal, and which of them cycle for certain.

    Attributes
    ----------
    verdicts : dict
        By signal; empty before there is enough to judge.
    """

    def __init__(self) -> None:
        self.verdicts: dict[str, SignalVerdict] = {}
        self._cycling: set[str] = set()
        self._streaks: dict[str, int] = {}

    def update(self, verdicts: Mapping[str, SignalVerdict]) -> list[dict[str, object]]:
        """Take in a judgement; return the alarms that it makes, as fields of an event."""
        self.verdicts = dict(verdicts)
        alarms: list[dict[str, object]] = []
        for name, verdict in verdicts.items():
            if verdict.verdict == "undecided" or verdict.oscillates == (name in self._cycling):
                self._streaks.pop(name, None)
                continue
            self._streaks[name] = streak = self._streaks.get(name, 0) + 1
            if streak < AGREEING:
                continue
            del self._streaks[name]
            (self._cycling.add if verdict.oscillates else self._cycling.discard)(name)
            state = "began" if verdict.oscillates else "stopped"
            alarms.append({"signal": name, "cycle": state, "verdict": verdict.verdict, "period_s": verdict.period_s})
        return alarms


def judge_recent(signals: pd.DataFrame, slots: int) -> dict[str, SignalVerdict]:
    """Judge some bins; touches nothing, so it may run in a thread."""
    if len(signals) < LEAST_BINS:
        return {}
    first_s, last_s = float(signals["t_s"].iloc[0]), float(signals["t_s"].iloc[-1])
    return judge_run(signals, slots=max(1, slots), service_per_s=None, warmup_s=first_s, horizon_s=last_s)
