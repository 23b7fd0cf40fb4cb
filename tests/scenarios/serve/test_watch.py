"""The running verdict: which signals cycle now, and an alarm where that changes for certain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scenarios.serve.watch import LEAST_BINS, WINDOW_S, RecentSignals, RunningVerdict, judge_recent
from tests.orchestrator.kit import ListSink
from tests.scenarios.serve.kit import chat, client, run, serving


def bins(first_s: float, count: int, *, swing: float, step_s: float = 0.5) -> pd.DataFrame:
    t = first_s + step_s * np.arange(count)
    level = 50.0 + swing * np.sign(np.sin(2 * np.pi * t / 12.0))
    return pd.DataFrame({"t_s": t, **{f"in_flight_turns_{part}": level for part in ("mean", "min", "max")}})


def test_a_signal_that_begins_to_cycle_and_stops_makes_one_alarm_each() -> None:
    running = RunningVerdict()
    alarms: list[dict[str, Any]] = []
    for swing in (0.0, 0.0, 20.0, 20.0, 20.0, 0.0, 20.0, 0.0, 0.0, 0.0):
        alarms += running.update(judge_recent(bins(0.0, 1200, swing=swing), 64))
    assert [(alarm["signal"], alarm["cycle"]) for alarm in alarms] == [
        ("in_flight_turns", "began"),
        ("in_flight_turns", "stopped"),
    ]
    assert abs(alarms[0]["period_s"] - 12.0) < 0.3


def test_only_the_last_minutes_are_kept_and_too_few_bins_are_not_judged() -> None:
    sink = ListSink()
    recent = RecentSignals(sink)
    for k in range(20):
        recent.signals({name: values.tolist() for name, values in bins(100.0 * k, 200, swing=1.0).items()})
    kept = recent.recent()["t_s"]
    assert kept.iloc[-1] == 1999.5
    assert kept.iloc[-1] - WINDOW_S - 100.0 <= kept.iloc[0] <= kept.iloc[-1] - WINDOW_S
    assert sink.bins["t_s"][0] == 1900.0
    assert judge_recent(bins(0.0, LEAST_BINS - 1, swing=1.0), 64) == {}


def test_a_server_shows_its_verdicts(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run", rate=100.0) as service, client(service) as http:
            page = ""
            while 'steadyflow_verdict{signal="in_flight_turns",verdict="' not in page:  # until there are enough bins
                assert (await http.post("/v1/chat/completions", json=chat("a", max_tokens=50))).status_code == 200
                service.flush()
                await service.judge()
                page = (await http.get("/metrics")).text

    run(main)
