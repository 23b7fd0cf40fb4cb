"""Seconds and bytes of collectives, hand-offs and transfers over the three network levels (essay, section 10).

Scale-up joins a domain, the backbone a rack's islands, scale-out everything else; `Hardware.level` says which one a
span needs. Latencies are those of small collectives; rates are shares of the link measured on large ones.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plant.model.hardware import all_to_all_copies
from plant.model.kernels import Array, Machine
from plant.model.placement import Placement

# A fused reduction crosses one more switch stage per doubling (aiconfigurator 0.12.0, custom all-reduce tables).
_HOP_S = 0.35e-6
# Fabric-memory all-reduce between trays costs about a third of NCCL's (FlashInfer MNNVL kernels).
_FABRIC_RATIO = 0.35
# Hand-off of a pipeline stage: one point-to-point send (12 us in graph, NCCL).
_HAND_OFF_S = 12e-6


class Transfer(NamedTuple):
    """Seconds on the critical path and bytes that one accelerator sends, with the network level that carries them."""

    seconds: Array
    link_bytes: Array
    level: str


def all_reduce(machine: Machine, moved_bytes: Array, ranks: int) -> Transfer:
    """Return an all-reduce of `moved_bytes` over `ranks` tensor-parallel ranks."""
    hardware = machine.hardware
    level = hardware.level(ranks)
    if ranks <= 1:
        return Transfer(np.zeros_like(moved_bytes), np.zeros_like(moved_bytes), level)
    sent = (2.0 * (ranks - 1) / ranks) * moved_bytes
    if ranks <= hardware.node:
        alpha = hardware.launch.all_reduce_s + _HOP_S * np.log2(ranks)
    else:
        alpha = hardware.launch.cross_node_all_reduce_s
        if level == "scale_up" and machine.engine.fabric_all_reduce:
            alpha *= _FABRIC_RATIO
    rate = hardware.bytes_per_s(ranks) * (hardware.shares.collective if level == "scale_up" else 0.5)
    return Transfer(machine.launch_ratio * alpha + sent / rate, sent, level)


def dispatch_combine(
    machine: Machine,
    place: Placement,
    *,
    width: int,
    per_token: int,
    dispatch_bytes: float,
    fill: bool,
    tokens: Array,
    copy_ratio: float = 1.0,
) -> tuple[Transfer, Transfer]:
    """Return the two halves of the expert all-to-all for `tokens` tokens of each data-parallel rank.

    Inside the scale-up domain a token is sent once to each distinct remote rank. Across it, decode sends every copy
    over the NIC; a filled block sends one copy per remote domain and spreads it there. Tensor ranks share the work. The
    rank that most copies go to, `copy_ratio` of the mean, sets the pace.
    """
    hardware = machine.hardware
    span = place.stage
    zero = np.zeros_like(tokens)
    level = hardware.level(span)
    if place.dp <= 1:
        return Transfer(zero, zero, level), Transfer(zero, zero, level)
    launch, shares = hardware.launch, hardware.shares
    copies, rate, hops = all_to_all_copies(span, per_token), hardware.bytes_per_s(span), np.log2(span)
    if level == "scale_up":
        rate *= shares.all_to_all
        hop_s = launch.hop_s
    else:
        outside = (span - hardware.domain) / span
        if fill:
            islands = span / hardware.domain
            copies = islands * (1.0 - (1.0 - 1.0 / islands) ** per_token) * (1.0 - 1.0 / islands)
        else:
            copies = per_token * outside
        rate *= shares.nic
        hop_s = launch.hop_s * 1.3
    sent = tokens * (copies * width * place.hot_ratio**0.5 * copy_ratio / place.tp)
    out, back = sent * dispatch_bytes, sent * 2.0
    ratio = machine.launch_ratio
    return (
        Transfer(ratio * (launch.dispatch_s + hop_s * hops) + out / rate, out, level),
        Transfer(ratio * (launch.combine_s + hop_s * hops) + back / rate, back, level),
    )


def hand_off(machine: Machine, place: Placement, width: int, tokens: Array) -> Transfer:
    """Return the passing of `tokens` activations from one pipeline stage to the next."""
    hardware = machine.hardware
    level = hardware.level(place.gpus)
    rate = hardware.scale_up_bytes_per_s * 0.5 if level == "scale_up" else hardware.bytes_per_s(place.gpus)
    moved = tokens * (2.0 * width)
    return Transfer(_HAND_OFF_S + moved / rate / place.tp, moved / place.tp, level)
