"""What the turns of an experiment show of their plant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies.design.residence import EXPONENTIAL, Shape, measured_shape

LEAST_GROUPS = 10


def shape_from(residences_ratio: Sequence[float]) -> Shape:
    """Return the shape of measured residences; exponential where there are too few to tell."""
    return measured_shape(residences_ratio) if len(residences_ratio) >= LEAST_GROUPS else EXPONENTIAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What the turns of an experiment show of their plant: mean dead time and residence, and its shape by ranks."""

    dead_time_s: float = 0.0
    residence_s: float = 0.0
    residences_ratio: tuple[float, ...] = ()

    @classmethod
    def of(cls, measured: Mapping[str, Any] | None) -> Turns:
        """Return what a run measured; nothing where it had no turns."""
        stays_s = (measured or {}).get("residences_s")
        if not measured or not stays_s:
            return cls()
        mean_s = sum(stays_s) / len(stays_s)
        ratios = tuple(stay_s / mean_s for stay_s in stays_s)
        return cls(dead_time_s=measured["dead_time_s"], residence_s=mean_s, residences_ratio=ratios)
