"""A run leaves no cycles of references behind: the collector is off meanwhile, so each would stay to the end."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from orchestrator.orchestrator import Orchestrator
from scenarios.run.execute import run
from scenarios.schema.load import load

EARLY_FAULTS = ("plant.faults.0.at_s=40", "plant.faults.1.at_s=50", "plant.faults.2.at_s=70")


@pytest.mark.parametrize(
    ("name", "horizon_s", "more"),
    [
        ("full_empty_reference", 30.0, ()),
        ("c1_constant", 20.0, ()),
        ("agentx_slow_fill", 60.0, ()),
        ("kv_hot_prefix", 60.0, ()),
        ("kv_link_fault", 100.0, EARLY_FAULTS),
    ],
)
def test_what_a_turn_leaves_goes_with_it(
    name: str, horizon_s: float, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    garbage: list[tuple[int, int]] = []

    def closed(self: Orchestrator, close: Any = Orchestrator._close) -> None:
        close(self)
        garbage.append((gc.collect(), self.ledger.retired))

    monkeypatch.setattr(Orchestrator, "_close", closed)
    scenario = load(
        name, [f"horizon_s={horizon_s}", f"warmup_s={horizon_s / 3}", f"record.signal_bin_s={horizon_s / 60}", *more]
    )
    gc.collect()
    run(scenario, scenario.candidates[-1].name)
    ((cyclic, retired),) = garbage
    assert retired > 20
    assert cyclic < 0.2 * retired, f"{cyclic} objects in cycles after {retired} turns"
