"""Seconds to load another model or placement onto a worker, and the KV positions that fit beside its weights.

    load = weights per accelerator / path rate + start-up

Paths: `host` (weights in the node's DRAM, over the host link), `peer` (another worker, over the NIC), `storage` (shared
by a node's accelerators). Start-up stands for process groups, graph capture and warm-up: SGLang spends 57 s of a warm
start of 88 s on it when nothing is kept, and 3 to 10 s when only the role of a worker flips.
"""

from __future__ import annotations

from plant.model.layer import Setting
from plant.model.memory import kv_bytes_per_token, memory, state_bytes_per_sequence

PATHS = ("host", "peer", "storage")
# Shares of the line rate: bulk copies over PCIe and C2C reach about 0.8, RDMA streams 0.7 (Mooncake), and parallel
# readers of one node's NVMe about the rate given.
_PATH_RATIO = {"host": 0.8, "peer": 0.7, "storage": 1.0}
GRAPH_CAPTURE_S = 6.0
FULL_START_S = 57.0


def weights_load_s(setting: Setting, path: str) -> float:
    """Return the seconds in which the fullest accelerator receives its weights over `path`.

    Raises
    ------
    ValueError
        For an unknown path.
    """
    if path not in PATHS:
        raise ValueError(f"path `{path}` is unknown; known: {', '.join(PATHS)}")
    hardware = setting.machine.hardware
    rate = {
        "host": hardware.host_link_bytes_per_s,
        "peer": hardware.nic_bytes_per_s,
        "storage": hardware.storage_bytes_per_s / hardware.node,
    }[path]
    return memory(setting, 0.0, 0.0).weights / (rate * _PATH_RATIO[path])


def reconfigure_s(setting: Setting, path: str | None) -> float:
    """Return the seconds from a drained worker to a ready one; `path` None flips its role and keeps the weights."""
    if path is None:
        return GRAPH_CAPTURE_S
    return weights_load_s(setting, path) + FULL_START_S


def kv_capacity_tokens(setting: Setting, slots: int) -> int:
    """Return the positions that the whole worker holds beside its weights and the states of `slots` sequences.

    Zero when the weights and states do not fit. Latent caches are repeated on tensor ranks, which the per-position
    bytes account for; data-parallel ranks and pipeline stages hold different sequences and add up.
    """
    place, hardware = setting.place, setting.machine.hardware
    fixed = float(memory(setting, 0.0, 0.0).total)
    states = slots / place.dp * state_bytes_per_sequence(setting.model, setting.precision, place) / place.pp
    per_token = kv_bytes_per_token(setting.model, setting.precision, place) / place.pp
    free_bytes = hardware.hbm_bytes - fixed - states
    return max(int(free_bytes / per_token), 0) * place.dp
