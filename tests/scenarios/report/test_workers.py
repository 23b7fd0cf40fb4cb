"""The page of a scaled pool shows the workers that are ready and those asked for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from scenarios.report.panel import shown
from scenarios.report.panels import workers
from scenarios.run.record import RunData
from tests.scenarios.fake_runs import fake_run


def scaled() -> RunData:
    run = fake_run(horizon_s=120.0)
    ready = np.where(run.signals["t_s"] < 50.0, 2.0, 4.0)
    parts = {f"pool.serve.active_workers_{part}": ready for part in ("mean", "min", "max")}
    events = [
        {"at_s": 0.0, "kind": "command", "slot": "capacity", "command": {"target_workers": {"serve": 2}}},
        {"at_s": 30.0, "kind": "command", "slot": "capacity", "command": {"target_workers": {"serve": 4}}},
        {"at_s": 31.0, "kind": "command", "slot": "admission", "command": {"gate_open": True}},
    ]
    summary = {**run.summary, "gpu_hours": 1.5, "reconfigurations": {"count": 2, "flaps": 1}}
    return replace(run, signals=run.signals.assign(**parts), events=events, summary=summary)


def test_ready_and_asked_workers_stand_in_one_panel_with_what_they_cost() -> None:
    panel = workers.panel(shown([scaled()]))
    assert panel is not None
    assert panel.title.endswith("1.5 GPU-hours, 2 changes, 1 of them flaps")
    asked = next(trace for trace in panel.figure.data if trace.line.dash == "dot")
    assert list(asked.x) == [0.0, 30.0, 120.0]
    assert list(asked.y) == [2.0, 4.0, 4.0]
    ready = next(trace for trace in panel.figure.data if trace.mode == "lines" and trace.line.dash == "solid")
    assert {float(y) for y in ready.y} == {2.0, 4.0}


def test_a_run_without_a_capacity_law_has_no_such_panel() -> None:
    assert workers.panel(shown([fake_run(horizon_s=120.0)])) is None
