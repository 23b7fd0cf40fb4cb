"""No float is summed by the built-in `sum`: from Python 3.12 on it rounds otherwise, and equal seeds would part."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable
from typing import Any

import pytest

from scenarios.run.execute import run
from scenarios.schema.load import load

OURS = ("orchestrator.", "plant.", "policies.", "scenarios.workloads.", "scenarios.build.")
built_in = builtins.sum

EARLY_FAULTS = ("plant.faults.0.at_s=40", "plant.faults.1.at_s=50", "plant.faults.2.at_s=70")


def sum_of_integers(values: Iterable[Any], /, start: Any = 0) -> Any:
    kept = list(values)
    frame = sys._getframe(1)
    module = str(frame.f_globals.get("__name__"))
    if module.startswith(OURS) and any(isinstance(value, float) for value in (start, *kept)):
        raise AssertionError(f"{module}, line {frame.f_lineno}: a float is summed by the built-in; use math.fsum")
    return built_in(kept, start)


@pytest.mark.parametrize(
    ("name", "candidate", "horizon_s", "more"),
    [
        ("full_empty_reference", "predictive_buffer", 20.0, ()),
        ("agentx_lanes", "retirement_gate", 100.0, ()),
        ("aggregated_vs_disaggregated", "disaggregated", 60.0, ()),
        ("kv_hot_prefix", "prefix_affinity", 60.0, ()),
        ("kv_link_fault", None, 100.0, EARLY_FAULTS),
        ("planner_tick_instant", None, 200.0, ()),
        ("interactive_reserve", None, 30.0, ()),
        ("day_six_loops", None, 700.0, ("workload.arrivals.mean_per_s=2.0",)),
    ],
)
def test_the_same_bytes_come_out_of_any_python(
    name: str, candidate: str | None, horizon_s: float, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (f"horizon_s={horizon_s}", f"warmup_s={horizon_s / 3}", f"record.signal_bin_s={horizon_s / 60}", *more)
    scenario = load(name, settings)
    monkeypatch.setattr(builtins, "sum", sum_of_integers)
    result = run(scenario, candidate or scenario.candidates[-1].name)
    assert result.summary["counts"]["retired"] > 0
