"""Joules of a pass: dynamic energy from bytes and FLOPs, and all-in energy from power and time.

    dynamic = sum of energy per byte or product x bytes or products
    all-in  = min(TDP, static + measured ratio x dynamic / T) x (all-in / TDP) x T

The dynamic sum is what a bottom-up simulator reports and what the essay's Figure 27 is close to; the all-in sum, with
idle power, node, network and cooling, is what a meter would see, three to ten times more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plant.model.kernels import Array
from plant.model.layer import Setting
from plant.model.regimes import Pass

# Joules per byte: engineering assumptions, not measurements. HBM 4 pJ/bit; NVLink 8 pJ/bit with both ends; NIC and
# optics 25 pJ/bit. What measured watts ask of their sum stands with the hardware (`dynamic_power_ratio`).
HBM_J_PER_BYTE = 32e-12
LINK_J_PER_BYTE = {"scale_up": 64e-12, "backbone": 200e-12, "scale_out": 200e-12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Joules of one pass over the whole worker, and the watts of one accelerator while it runs."""

    dynamic_j: Array
    all_in_j: Array
    watts: Array


def pass_energy(setting: Setting, step: Pass, passes_alive: float = 1.0) -> Energy:
    """Return the energy of one pass over all accelerators of the worker.

    `Pass` counts one accelerator of every stage together, so a stage has `tp * dp` times that. `passes_alive`
    micro-batches share the seconds of a full pipeline and with them its static power.
    """
    machine, place = setting.machine, setting.place
    hardware = machine.hardware
    per_rank = step.hbm_bytes * HBM_J_PER_BYTE + step.math_j
    for level, moved in step.link_bytes.items():
        per_rank = per_rank + moved * LINK_J_PER_BYTE[level]
    dynamic = per_rank * place.stage
    busy = passes_alive * dynamic / place.gpus / step.seconds
    static = hardware.static_power_ratio * hardware.tdp_w
    watts = np.minimum(static + hardware.dynamic_power_ratio * busy, hardware.tdp_w)
    all_in = watts * (hardware.all_in_w / hardware.tdp_w) * step.seconds * place.gpus / passes_alive
    return Energy(dynamic_j=dynamic, all_in_j=np.maximum(all_in, dynamic), watts=watts)
