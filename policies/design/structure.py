"""What a law is to theory: the kinds of feedback that have an analysis, declared by the laws themselves.

An admission law offers `structure(model)`, a capacity law `scaling()`; either returns one of these, or None where it
has no linearisation and no known orbit. A law that may have none says why in `no_linearisation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from policies.design.tandem_model import Linear, TandemModel


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOnBusy:
    """A switch on busy slots: opens at or below `open_at_turns`, closes at or above `close_at_turns`.

    `refuses` True: what comes while it is closed is turned away, not held, so that it opens to the arrivals alone.
    """

    open_at_turns: float
    close_at_turns: float
    refuses: bool = False


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

    `setpoint_turns` is the work that it holds: busy slots for feedback on them, turns at decode (busy and ready) or
    turns in flight for feedback on those. `rate_per_s` is the release rate there with the plant as assumed.
    """

    linear: Linear
    setpoint_turns: float
    rate_per_s: float
    on: Literal["busy", "at_decode", "in_flight"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiplicative:
    """Scaling by the ratio of load to target, to a power `gain`; `pending_counted` when it counts what is on its way.

    `window_s` holds it at the largest advice of that span on the way down (0: no window).
    """

    configuration: str
    gain: float
    pending_counted: bool
    window_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """One worker more at a load per worker of `up` or above, one fewer below `down`.

    `consolidation`: going down asks what the load will be with one worker fewer. `waits`: moves only when no worker is
    on its way.
    """

    configuration: str
    up: float
    down: float
    consolidation: bool
    waits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """Workers after demand alone, through a lag; nothing that it does comes back."""

    configurations: tuple[str, ...]
    lag_s: float


Scaling = Multiplicative | Steps | FeedForward


@runtime_checkable
class Scales(Protocol):
    """A capacity law that says what it is to theory."""

    def scaling(self) -> Scaling | None:
        """Return the law's structure; None where it has none."""
        ...


Structure = RelayOnBusy | RelayOnWork | OneForOne | Smooth


def reads_plant(structure: Structure | None) -> bool:
    """Tell whether a law acts on busy slots, which the plant reports; every other counts what is under way itself."""
    return isinstance(structure, RelayOnBusy) or (isinstance(structure, Smooth) and structure.on == "busy")


@runtime_checkable
class Declares(Protocol):
    """A law that says what it is to theory."""

    def structure(self, model: TandemModel) -> Structure | None:
        """Return the law's structure before a plant of this model."""
        ...


def reason_for_none(law: object) -> str | None:
    """Return why a law has no linearisation, in its own words; None where it does not say."""
    reason = getattr(law, "no_linearisation", None)
    return reason if isinstance(reason, str) else None
