"""The verdict on one signal: the words, and each field with its unit and meaning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

Word = Literal[
    "constant",
    "undecided",
    "stalled",
    "unbounded",
    "driven",
    "echo",
    "growing",
    "limit_cycle",
    "quasi_cycle",
    "ringing",
    "hunting",
    "steady",
]
FlowWord = Literal["fed", "starved", "saturated"]
WORDS: tuple[str, ...] = get_args(Word)
FLOW_WORDS: tuple[str, ...] = get_args(FlowWord)
# The words that name a swing made by the loop itself: sustained, growing, decaying or irregular.
LOOP_CYCLES: frozenset[Word] = frozenset({"echo", "growing", "limit_cycle", "quasi_cycle", "ringing", "hunting"})


class Cost(TypedDict):
    """What the swing costs: slots left idle while work waited (share), and latency added at the 99th percentile."""

    utilization_lost_ratio: float | None
    added_p99_s: float | None


NO_COST: Cost = {"utilization_lost_ratio": None, "added_p99_s": None}
COST_MEANINGS = {
    "utilization_lost_ratio": "slot time left idle while work waited, over all slot time",
    "added_p99_s": "what the cycle adds to the 99th percentile of the time to first token",
}


def _described(unit: str, meaning: str, empty: str = "never") -> dict[str, str]:
    return {"unit": unit, "meaning": meaning, "empty": empty}


def _no_curve() -> NDArray[np.float64]:
    return np.empty(0)


_NO_CYCLE = "no repetition was found"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalVerdict:
    """The verdict on one signal.

    The fields with a meaning stand in `verdict.json`, in this order. The arrays are for pictures: they stand in
    `curves.parquet`.
    """

    signal: str
    verdict: Word = field(metadata=_described("", f"one of {len(WORDS)} words: {', '.join(WORDS)}"))
    period_s: float | None = field(default=None, metadata=_described("s", "period of the repetition", _NO_CYCLE))
    other_periods_s: tuple[float, ...] = field(
        default=(), metadata=_described("s", "periods of further cycles in the same signal, the strongest first")
    )
    amplitude_ratio: float = field(
        default=0.0, metadata=_described("ratio", "half of the peak-to-peak swing of one cycle over the signal's scale")
    )
    damping_ratio: float | None = field(
        default=None, metadata=_described("ratio", "zeta of the cycle; 0: undamped, negative: growing", _NO_CYCLE)
    )
    p_value: float | None = field(
        default=None, metadata=_described("ratio", "chance of such a peak under red noise", "the signal was not tested")
    )
    regularity: float | None = field(
        default=None, metadata=_described("", "over 1: zero crossings of the autocorrelation are regular", _NO_CYCLE)
    )
    envelope_cv: float | None = field(
        default=None, metadata=_described("", "near 0: a limit cycle; near 0.52: a cycle kept up by noise", _NO_CYCLE)
    )
    periods: float | None = field(default=None, metadata=_described("", "periods in the window", _NO_CYCLE))
    cost: Cost = field(
        default_factory=lambda: NO_COST.copy(), metadata=_described("", "what the swing costs: the two fields below it")
    )
    reason: str = field(metadata=_described("", "why this word, in a sentence"))
    acf_lags_s: NDArray[np.float64] = field(default_factory=_no_curve, repr=False, compare=False)
    acf: NDArray[np.float64] = field(default_factory=_no_curve, repr=False, compare=False)
    spectrum_hz: NDArray[np.float64] = field(default_factory=_no_curve, repr=False, compare=False)
    spectrum: NDArray[np.float64] = field(default_factory=_no_curve, repr=False, compare=False)

    @property
    def oscillates(self) -> bool:
        """Tell whether the loop itself makes a cycle here."""
        return self.verdict in LOOP_CYCLES

    def to_json(self) -> dict[str, object]:
        """Return the verdict as JSON values, floats rounded to 9 significant digits; non-finite become None."""
        return {f.name: _plain(getattr(self, f.name)) for f in VERDICT_FIELDS}


VERDICT_FIELDS: tuple[Field[Any], ...] = tuple(f for f in fields(SignalVerdict) if f.metadata)
"""The fields of a verdict in `verdict.json`; `metadata` holds unit, meaning and when it is empty."""
NUMBER_PATHS = (
    *(f.name for f in VERDICT_FIELDS if str(f.type).startswith("float")),
    *(f"cost.{name}" for name in COST_MEANINGS),
)
"""The numbers of a verdict, as an expectation names them."""


def signal_of(key: str) -> str | None:
    """Return the signal whose verdict an expectation's key `verdict.<signal>.<field>` means; None: no such key."""
    for path in ("verdict", "reason", *NUMBER_PATHS):
        if key.startswith("verdict.") and key.endswith(f".{path}"):
            return key.removeprefix("verdict.").removesuffix(f".{path}") or None
    return None


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(element) for element in value]
    if isinstance(value, float | int):
        return float(f"{value:.9g}") if math.isfinite(value) else None
    return value
