"""What a record needs to know of a verdict, and a verdict as read back. The verdict room's own class fits `Verdict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np


class Verdict(Protocol):
    """What the record needs of a signal's verdict; the arrays go to `curves.parquet`, the rest to `verdict.json`."""

    @property
    def verdict(self) -> str: ...
    @property
    def period_s(self) -> float | None: ...
    @property
    def amplitude_ratio(self) -> float: ...
    @property
    def damping_ratio(self) -> float | None: ...
    @property
    def p_value(self) -> float | None: ...
    @property
    def regularity(self) -> float | None: ...
    @property
    def envelope_cv(self) -> float | None: ...
    @property
    def periods(self) -> float | None: ...
    @property
    def cost(self) -> Mapping[str, object]: ...
    @property
    def reason(self) -> str: ...
    @property
    def acf_lags_s(self) -> Sequence[float] | np.ndarray: ...
    @property
    def acf(self) -> Sequence[float] | np.ndarray: ...
    @property
    def spectrum_hz(self) -> Sequence[float] | np.ndarray: ...
    @property
    def spectrum(self) -> Sequence[float] | np.ndarray: ...

    def to_json(self) -> dict[str, object]:
        """Return the verdict without its arrays, ready for JSON."""
        ...


def _no_curve() -> np.ndarray:
    return np.empty(0)


@dataclass(frozen=True, kw_only=True)
class RecordedVerdict:
    """A verdict as read back from a run's folder."""

    verdict: str
    period_s: float | None = None
    amplitude_ratio: float = 0.0
    damping_ratio: float | None = None
    p_value: float | None = None
    regularity: float | None = None
    envelope_cv: float | None = None
    periods: float | None = None
    cost: Mapping[str, object] = field(default_factory=dict)
    reason: str = ""
    acf_lags_s: np.ndarray = field(default_factory=_no_curve, repr=False)
    acf: np.ndarray = field(default_factory=_no_curve, repr=False)
    spectrum_hz: np.ndarray = field(default_factory=_no_curve, repr=False)
    spectrum: np.ndarray = field(default_factory=_no_curve, repr=False)

    def to_json(self) -> dict[str, object]:
        """Return the verdict without its arrays, as it was read."""
        return {name: getattr(self, name) for name in JSON_FIELDS}


JSON_FIELDS = (
    *("verdict", "period_s", "amplitude_ratio", "damping_ratio", "p_value", "cost"),
    *("regularity", "envelope_cv", "periods", "reason"),
)
