"""Tiers from a hardware preset: what the nodes of a cluster have in DRAM, disks, NICs and host links.

    nodes      = workers x gpus_per_worker / accelerators of a node, rounded up
    node       STAGING_RATIO of the DRAM around a worker, behind its accelerators' host links
    network    POOL_RATIO of all nodes' DRAM; a server a node, as fast as the slower of its NICs and its host links
    ssd        the nodes' drives; a server a node, as fast as its drives striped

Whatever a table states stands; the rest comes from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from plant.model.hardware import Hardware
from plant.presets.hardware import HARDWARE
from scenarios.errors import UserError, nearest
from scenarios.schema.kv import KvPart, ServedTier, Tier

POOL_RATIO = 0.5
"""Share of a node's DRAM lent to the shared pool: an assumption; the engine and its page cache need the rest."""
STAGING_RATIO = 0.1
"""Share set aside for outgoing state: an assumption."""
DRAM_LATENCY_S = 5e-6
"""One-sided RDMA read of remote DRAM, a few microseconds (NVIDIA, ConnectX-7 data sheet: below 1 us a hop)."""
SSD_LATENCY_S = 1e-4
"""Read latency of a data-centre NVMe drive, 70 to 100 us (vendors' data sheets)."""


def with_preset(part: KvPart, workers: int) -> KvPart:
    """Return a table of tiers with all that its hardware supplies filled in.

    Parameters
    ----------
    part : KvPart
    workers : int
        Of the whole cluster.

    Raises
    ------
    UserError
        No such hardware.
    """
    if part.hardware is None:
        return part
    chip = HARDWARE.get(part.hardware)
    if chip is None:
        near = nearest(part.hardware, HARDWARE)
        raise UserError(f"plant.kv.hardware: no {part.hardware}{near}; there are {', '.join(HARDWARE)}")
    gpus = part.gpus_per_worker
    tiers = ("node", "ssd") if part.tiers is None else part.tiers
    changes: dict[str, Any] = {"network": ServedTier(**_filled(part.network, _network(chip, workers * gpus)))}
    if "node" in tiers:
        changes["node"] = Tier(**_filled(part.node, _node(chip, gpus, workers)))
    if "ssd" in tiers:
        changes["ssd"] = ServedTier(**_filled(part.ssd, _ssd(chip, workers * gpus)))
    if part.nics is None:
        changes["nics"] = gpus
    if part.nic_bytes_per_s is None:
        changes["nic_bytes_per_s"] = chip.nic_bytes_per_s
    return part.model_copy(update=changes)


def _filled(tier: Tier | None, preset: Mapping[str, Any]) -> dict[str, Any]:
    stated = {} if tier is None else {name: getattr(tier, name) for name in tier.model_fields_set}
    return {**preset, **stated}


def _nodes(chip: Hardware, gpus: int) -> int:
    return max(1, math.ceil(gpus / chip.node))


def _node(chip: Hardware, gpus: int, workers: int) -> dict[str, Any]:
    return {
        "capacity_bytes": STAGING_RATIO * chip.host_dram_bytes * gpus / chip.node * workers,
        "bytes_per_s": chip.host_link_bytes_per_s * gpus,
        "latency_s": DRAM_LATENCY_S,
    }


def _network(chip: Hardware, gpus: int) -> dict[str, Any]:
    nodes = _nodes(chip, gpus)
    return {
        "capacity_bytes": POOL_RATIO * chip.host_dram_bytes * nodes,
        "bytes_per_s": chip.node * min(chip.nic_bytes_per_s, chip.host_link_bytes_per_s),
        "servers": nodes,
        "latency_s": DRAM_LATENCY_S,
    }


def _ssd(chip: Hardware, gpus: int) -> dict[str, Any]:
    nodes = _nodes(chip, gpus)
    return {
        "capacity_bytes": chip.ssd_bytes * nodes,
        "bytes_per_s": chip.storage_bytes_per_s,
        "servers": nodes,
        "latency_s": SSD_LATENCY_S,
    }
