"""Break the time of a layer down into operations, for one placement and batch, in their order (essay, section 11)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plant.model.layer import Operation, Setting
from plant.model.regimes import operations

# The order within one layer (essay, section 11, Figures 16 and 17); attention kinds alternate between layers.
_ORDER = (
    "projections",
    "core",
    "all-reduce",
    "context gather",
    "norms",
    "router",
    "latent projections",
    "dispatch",
    "routed experts",
    "remote experts",
    "combine",
    "shared experts",
    "dense FFN",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One operation: seconds in a layer that has it, layers that have it, its intensity and what bounds it."""

    name: str
    part: str
    layers: int
    seconds: float
    total_s: float
    share_ratio: float
    flop_per_byte: float | None
    link_bytes: float
    level: str


def explain(setting: Setting, batch: float, new: float, cached: float, *, fill: bool) -> list[Slice]:
    """Return the operations of a pass in descending order of their time."""
    ops: list[Operation] = operations(setting, batch, new, cached, fill=fill)
    total_s = sum(float(op.layers * op.cost.seconds) for op in ops)
    slices = []
    for op in ops:
        seconds, moved = float(op.cost.seconds), float(op.cost.hbm_bytes)
        slices.append(
            Slice(
                name=op.name,
                part=op.part,
                layers=op.layers,
                seconds=seconds,
                total_s=seconds * op.layers,
                share_ratio=seconds * op.layers / total_s,
                flop_per_byte=float(op.cost.flops) / moved if moved > 0 else None,
                link_bytes=float(np.asarray(op.link_bytes)) if op.link_bytes is not None else 0.0,
                level=op.level,
            )
        )
    return sorted(slices, key=lambda s: -s.total_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One operation of one layer on the time axis, in seconds from the layer's start."""

    name: str
    part: str
    start_s: float
    seconds: float


def layer_bars(slices: list[Slice], attention: str) -> list[Bar]:
    """Return one expert layer with `attention` ("MLA", "KDA", ...) as a sequence of bars, in the order of its steps.

    Collectives that run twice per layer are split: after attention and after the experts.
    """
    bars: list[Bar] = []
    now = 0.0
    shown = [s for s in slices if s.name != "dense FFN" and (not _kind(s.name) or s.name.startswith(attention))]

    def place(s: Slice, share: float) -> None:
        nonlocal now
        bars.append(Bar(name=s.name, part=s.part, start_s=now, seconds=s.seconds * share))
        now += s.seconds * share

    layers = max(s.layers for s in slices if s.name == "norms")
    for s in sorted(shown, key=lambda s: _rank(s.name)):
        place(s, 1.0)
    for s in shown:
        if s.name == "all-reduce" and s.layers > layers:
            place(s, 1.0)
    return bars


def _kind(name: str) -> bool:
    return name.endswith((" core", " projections")) and not name.startswith("latent")


def _rank(name: str) -> int:
    if name in _ORDER:
        return _ORDER.index(name)
    return 0 if name.endswith("projections") else 1 if name.endswith("core") else _ORDER.index("dispatch")
