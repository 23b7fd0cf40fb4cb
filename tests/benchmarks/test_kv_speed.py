"""What tiers cost: a run with them in units of the same run with a flat store, measured side by side."""

from __future__ import annotations

import pytest

from scenarios.run.execute import run
from scenarios.schema.kv import KvPart, ServedTier, Tier
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario

INSTANT = KvPart(bytes_per_token=70e3, network=ServedTier(capacity_bytes=2e13))
TIMED = KvPart(
    bytes_per_token=70e3,
    node=Tier(capacity_bytes=2e12, bytes_per_s=450e9),
    network=ServedTier(capacity_bytes=2e13, bytes_per_s=50e9, servers=8),
    ssd=ServedTier(capacity_bytes=2e14, bytes_per_s=25e9, servers=8),
    nics=4,
    nic_bytes_per_s=50e9,
    per_object_s=5e-4,
)


def span_s(scenario: Scenario, kv: KvPart | None) -> float:
    plant = scenario.plant.model_copy(update={"kv": kv})
    summary = run(scenario.model_copy(update={"plant": plant}), "paced_wip").summary
    return float(summary["cpu_s_by_part"]["span"])


@pytest.mark.slow
@pytest.mark.parametrize(("kv", "most"), [(INSTANT, 1.5), (TIMED, 2.2)], ids=["instant", "timed"])
def test_tiers_cost_a_bounded_share_of_a_run(kv: KvPart, most: float) -> None:
    # Bounds leave room for a busy machine; idle, the ratios are about 1.2 and 1.6.
    scenario = load("agentx_lanes", ("horizon_s=400", "warmup_s=100"))
    pairs = [(span_s(scenario, None), span_s(scenario, kv)) for _ in range(3)]
    assert min(tiers / flat for flat, tiers in pairs) <= most
