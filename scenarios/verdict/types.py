"""The series that a verdict is passed on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
    turns : float or None
        Turns that moved through the loop in the window: a cycle is not claimed from a handful (None: not known).
    actuator : bool
        True for what a controller sets (workers, replicas): many irregular reversals of it are called hunting.
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
    turns: float | None = None
    actuator: bool = False
