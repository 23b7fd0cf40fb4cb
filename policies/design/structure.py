"""What a law is to theory: the kinds of feedback that have an analysis, declared by the laws themselves.

A law offers `structure(model)`; it returns one of these, or None where it has no linearisation and no known orbit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from policies.design.admission import Linear, TandemModel


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOnBusy:
    """A switch on busy slots: opens at or below `open_at_turns`, closes at or above `close_at_turns`."""

    open_at_turns: float
    close_at_turns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOnWork:
    """A switch on all turns in flight, with the same two levels."""

    open_at_turns: float
    close_at_turns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OneForOne:
    """A release for each retirement, with `cap_turns` in flight."""

    cap_turns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Smooth:
    """A law with a linearisation about a set point.

    `setpoint_turns` is the work that it holds: busy slots for feedback on them, turns in flight for feedback on work.
    `rate_per_s` is the release rate there with the plant as assumed.
    """

    linear: Linear
    setpoint_turns: float
    rate_per_s: float
    on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiplicative:
    """Scaling by the ratio of load to target, to a power `gain`; `pending_counted` when it counts what is on its way.

    `window_s` holds it at the largest advice of that span on the way down (0: no window).
    """

    configuration: str
    gain: float
    pending_counted: bool
    window_s: float


@runtime_checkable
class Scales(Protocol):
    """A capacity law that says what it is to theory."""

    def scaling(self) -> Multiplicative:
        """Return the law's structure in logarithms."""
        ...


Structure = RelayOnBusy | RelayOnWork | OneForOne | Smooth


@runtime_checkable
class Declares(Protocol):
    """A law that says what it is to theory."""

    def structure(self, model: TandemModel) -> Structure | None:
        """Return the law's structure before a plant of this model."""
        ...
