"""The nine words and what is said with each: the verdict on one signal, and the series that it is passed on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Word = Literal[
    "constant",
    "undecided",
    "unbounded",
    "driven",
    "echo",
    "limit_cycle",
    "quasi_cycle",
    "ringing",
    "steady",
]
# The words that name a sustained or decaying cycle made by the loop itself.
LOOP_CYCLES: frozenset[Word] = frozenset({"echo", "limit_cycle", "quasi_cycle", "ringing"})


class Cost(TypedDict):
    """What the swing costs: slots left idle while work waited (share), and latency added at the 99th percentile."""

    utilization_lost_ratio: float | None
    added_p99_s: float | None


NO_COST: Cost = {"utilization_lost_ratio": None, "added_p99_s": None}


def _empty() -> Floats:
    return np.empty(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One signal in equal bins.

    Parameters
    ----------
    name : str
        The signal's name.
    step_s : float
        Width of a bin, seconds.
    mean : ndarray
        Time-weighted mean of each bin, shape (n,); every value finite.
    minimum, maximum : ndarray or None
        Extremes within each bin, shape (n,); None where the signal has none (counts).
    scale : float
        What a swing is measured against: slots for turn counts, full-pool service rate for rates, 1 for ratios.
    stock : bool
        True for a stock that could grow for ever (turns waiting, workers); False for what is bounded by nature.
    one_turn : float or None
        What one turn adds to the signal (1/slots for an occupancy ratio, 1/step_s for a rate); it sets the size of
        plain counting noise. None: the signal does not count turns.
    flow : bool
        True for counts per bin, whose counting noise falls as bins are joined; False for levels.
    """

    name: str
    step_s: float
    mean: Floats
    scale: float
    minimum: Floats | None = None
    maximum: Floats | None = None
    stock: bool = False
    one_turn: float | None = None
    flow: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalVerdict:
    """The verdict on one signal.

    `amplitude_ratio` = half of the peak-to-peak swing of one cycle / scale. `damping_ratio` is zeta of the cycle
    (0: undamped, negative: growing). `p_value` = chance of such a peak under a red-noise null. `regularity` > 1 says
    that the zero crossings of the autocorrelation are regular. `envelope_cv` near 0 is a limit cycle, near 0.52 a
    cycle kept up by noise. `periods` = periods in the window. The arrays are for pictures, not for JSON.
    """

    signal: str
    verdict: Word
    reason: str
    period_s: float | None = None
    amplitude_ratio: float = 0.0
    damping_ratio: float | None = None
    p_value: float | None = None
    regularity: float | None = None
    envelope_cv: float | None = None
    periods: float | None = None
    cost: Cost = field(default_factory=lambda: NO_COST.copy())
    acf_lags_s: Floats = field(default_factory=_empty, repr=False, compare=False)
    acf: Floats = field(default_factory=_empty, repr=False, compare=False)
    spectrum_hz: Floats = field(default_factory=_empty, repr=False, compare=False)
    spectrum: Floats = field(default_factory=_empty, repr=False, compare=False)

    @property
    def oscillates(self) -> bool:
        """Tell whether the loop itself makes a cycle here."""
        return self.verdict in LOOP_CYCLES

    def to_json(self) -> dict[str, object]:
        """Return the verdict as JSON values, floats rounded to 9 significant digits; non-finite become None."""
        plain = {
            name: _rounded(getattr(self, name))
            for name in ("period_s", "amplitude_ratio", "damping_ratio", "p_value", "regularity", "envelope_cv")
        }
        cost: Mapping[str, float | None] = {
            "utilization_lost_ratio": self.cost["utilization_lost_ratio"],
            "added_p99_s": self.cost["added_p99_s"],
        }
        return {
            "verdict": self.verdict,
            **plain,
            "periods": _rounded(self.periods),
            "cost": {key: _rounded(value) for key, value in cost.items()},
            "reason": self.reason,
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.9g}")
