"""What a user meets: the notebook, the panels, the summary, and refusals in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plant.presets.hardware import HARDWARE
from scenarios.build.kv import kv_spec
from scenarios.errors import UserError
from scenarios.report.panel import shown
from scenarios.report.panels import tiers
from scenarios.run.execute import run
from scenarios.schema.kv import KvPart, ServedTier
from scenarios.schema.load import load
from tests.paths import ROOT

SHORT = ("horizon_s=120", "warmup_s=40", "workload.lanes=16", "workload.conversations.sessions=30")


def test_the_record_tells_the_same_story_in_figures_and_pictures() -> None:
    recorded = run(load("kv_compaction_storm", SHORT))
    kv = recorded.summary["kv"]
    hit_tokens = sum(kv["hit_tokens"].values())
    assert kv["hit_token_ratio"] == pytest.approx(hit_tokens / kv["prompt_tokens"])
    flows = {(f["from"], f["to"]): f["bytes"] for f in kv["flows_bytes"]}
    brought = sum(size for (source, to), size in flows.items() if to == "accelerators" and source != "computed")
    assert brought == pytest.approx(hit_tokens * 70e3, rel=0.01)  # whole blocks are brought, tokens are counted
    assert flows["computed", "accelerators"] == pytest.approx((kv["prompt_tokens"] - hit_tokens) * 70e3)
    drawn = shown([recorded.data])
    timeline, moved = tiers.timeline(drawn), tiers.flows(drawn)
    assert timeline is not None
    assert moved is not None
    assert f"{100 * kv['hit_token_ratio']:.3g} %" in timeline.title
    assert sum(sum(trace.x) for trace in moved.figure.data) == pytest.approx(sum(flows.values()) * 1e-12)


def test_a_plant_without_tiers_has_no_kv_block_and_no_panel() -> None:
    recorded = run(load("mild", ("horizon_s=40", "warmup_s=10")))
    assert recorded.summary["kv"] is None
    assert tiers.timeline(shown([recorded.data])) is None
    assert tiers.flows(shown([recorded.data])) is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("plant.kv.network.bytes_per_s=0", "bytes_per_s"),
        ("plant.kv.network.capacity_bytes=1e9", "holds not one context of this workload, whose median prompt"),
        ("plant.kv.node.capacity_bytes=1e6", "plant.kv.node.capacity_bytes = 1e+06: holds not one context"),
        ("plant.kv.ssd.capacity_bytes=1e6", "plant.kv.ssd.capacity_bytes = 1e+06: holds not one context"),
        ("plant.configurations.decode.kv_capacity_tokens=20000", "hold not one context of the workload (median"),
        ("plant.kv.snapshot_tokens=100", "is no multiple of the block"),
        ("plant.kv.efficiency_ratio=0", "efficiency_ratio"),
        ("candidates.drop_compacted.retention.capacity_tokens=1000", "holds not one context"),
        ("plant.kv.engine_block_tokens=48", "64 or a multiple of it would be right"),
        ("plant.configurations.decode.kv_capacity_tokens=50", "does not hold one block"),
        ("plant.kv.bytes_per_token=50e3", "one model has one size of state"),
        ("plant.kv.replicas=9", "need as many network.servers"),
        ("plant.kv.hardware=b2000", "did you mean"),
        ('plant.kv.tiers=["node"]', "ssd has a table, but tiers"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(change: str, says: str) -> None:
    hybrid = "plant.kv.snapshot_bytes=1000000"
    with pytest.raises(UserError) as refused:
        run(load("kv_compaction_storm", (*SHORT, hybrid, change)))
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_capacity_rate_and_latency_of_each_tier_come_from_the_hardware_unless_the_table_states_them() -> None:
    scenario = load("kv_compaction_storm", SHORT)
    racks = scenario.plant.racks
    workers = sum(rack.count * rack.workers for rack in racks)
    chip = HARDWARE["h200"]
    part = KvPart(bytes_per_token=70e3, hardware="h200", gpus_per_worker=8)
    spec = kv_spec(part, racks, scenario)
    assert spec.node is not None
    assert spec.ssd is not None
    assert spec.network.servers == spec.ssd.servers == workers  # a worker is a node of eight
    assert spec.node.bytes_per_s == 8 * chip.host_link_bytes_per_s
    assert spec.network.bytes_per_s == 8 * chip.nic_bytes_per_s
    assert spec.ssd.bytes_per_s == chip.storage_bytes_per_s
    assert spec.node.capacity_bytes + spec.network.capacity_bytes <= workers * chip.host_dram_bytes
    assert spec.ssd.capacity_bytes == workers * chip.ssd_bytes
    assert 0.0 < spec.network.latency_s < spec.ssd.latency_s
    assert (spec.nics, spec.nic_bytes_per_s) == (8, chip.nic_bytes_per_s)
    half = kv_spec(part.model_copy(update={"gpus_per_worker": 4}), racks, scenario)
    assert half.network.capacity_bytes == 0.5 * spec.network.capacity_bytes  # two workers share a node
    by_hardware = KvPart(
        bytes_per_token=70e3, hardware="h200", tiers=("node",), network=ServedTier(capacity_bytes=1e13)
    )
    stated = kv_spec(by_hardware, racks, scenario)
    assert stated.ssd is None
    assert stated.network.capacity_bytes == 1e13
    assert stated.network.bytes_per_s == spec.network.bytes_per_s


def test_an_engine_with_larger_blocks_reuses_less() -> None:
    fine, coarse = (
        run(load("kv_hot_prefix", (*SHORT, f"plant.kv.engine_block_tokens={block}"))).summary["kv"]["hit_token_ratio"]
        for block in (64, 4096)
    )
    assert coarse < fine


def cells() -> list[Any]:
    notebook: list[Any] = json.loads((ROOT / "notebooks" / "kv_cliff.ipynb").read_text(encoding="utf-8"))["cells"]
    return [cell for cell in notebook if cell["cell_type"] == "code"]


def test_the_notebook_is_stored_without_outputs() -> None:
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells())


@pytest.mark.slow
def test_the_notebook_runs_and_shows_the_cliff() -> None:
    space: dict[str, Any] = {}
    for cell in cells():
        exec("".join(cell["source"]), space)  # the notebook's code, in one namespace
    hits = [kv["hit_token_ratio"] for kv in space["by_capacity"].values()]
    assert hits == sorted(hits)
    assert hits[0] < 0.5 < 0.9 < hits[-1]
