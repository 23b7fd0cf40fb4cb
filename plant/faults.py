"""Faults that a scenario injects into a cluster: workers, links and storage servers lost or slowed, poisoned turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plant.model.times import StepTimes


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSpec:
    """One fault.

    Attributes
    ----------
    kind : {"lost", "slowed", "link_down", "storage_lost"}
        `storage_lost`: a storage server's link is down and what only it kept is gone.
    at_s : float
    until_s : float or None
        When the worker comes back empty, regains its speed, or the link carries again; None: never.
    worker : int or None
        The worker lost or slowed.
    rack : int or None
        The rack whose uplink goes down.
    link : str or None
        Or the storage server whose link does, as `network.0` or `ssd.1`.
    factor : float
        Every step of a slowed worker takes this many times as long; a link carries 1 / factor of its rate
        (`math.inf`: nothing).
    """

    kind: Literal["lost", "slowed", "link_down", "storage_lost"]
    at_s: float
    until_s: float | None = None
    worker: int | None = None
    rack: int | None = None
    link: str | None = None
    factor: float = 1.0

    @property
    def target(self) -> tuple[object, ...]:
        """The kind of fault and the worker or link that it strikes; a lost server's link is down too."""
        return self.on_link or self.kind, self.worker, self.rack, self.link

    @property
    def on_link(self) -> bool:
        """Whether it strikes a link."""
        return self.kind in ("link_down", "storage_lost")

    def __post_init__(self) -> None:
        if (self.rack is None) == (self.link is None) if self.on_link else (self.worker is None):
            required = "rack, or else its link" if self.on_link else "worker"
            raise ValueError(f"a fault of kind {self.kind} names its {required}")
        if self.until_s is not None and self.until_s <= self.at_s:
            raise ValueError(f"a fault at {self.at_s:g} s cannot end at {self.until_s:g} s")
        if not self.factor >= 1.0:
            raise ValueError(f"a fault's factor is a slowdown, at least 1; not {self.factor:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoisonSpec:
    """Turns that kill the worker that decodes them.

    Attributes
    ----------
    at_s, until_s : float
        Turns that begin to decode from `at_s` on and before `until_s` may be poisoned (math.inf: to the end).
    share : float
        The share of all turns that is: the same ones whatever the policy, and at every attempt.
    after_s : float
        Seconds from the begin of the decode to the worker's end.
    back_s : float
        Seconds after which the worker is back, empty.
    """

    at_s: float
    until_s: float
    share: float
    after_s: float
    back_s: float


class SlowedTimes:
    """Step times multiplied by a factor."""

    __slots__ = ("_factor", "_times")

    def __init__(self, times: StepTimes, factor: float) -> None:
        self._times, self._factor = times, factor

    def step_s(self, batch: int, kv_tokens: int) -> float:
        """Seconds of one decode step."""
        return self._times.step_s(batch, kv_tokens) * self._factor

    def span_s(self, batch: int, kv_tokens: int, steps: int) -> float:
        """Seconds of `steps` decode steps."""
        return self._times.span_s(batch, kv_tokens, steps) * self._factor

    def steps_within(self, batch: int, kv_tokens: int, span_s: float) -> int:
        """Whole steps that end within `span_s`."""
        return self._times.steps_within(batch, kv_tokens, span_s / self._factor)

    def mixed_s(self, batch: int, kv_tokens: int, new_tokens: int, cached_tokens: int) -> float:
        """Seconds of one pass that decodes the batch and fills a chunk."""
        return self._times.mixed_s(batch, kv_tokens, new_tokens, cached_tokens) * self._factor
