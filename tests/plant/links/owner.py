"""The least owner that a flow can have: it calls one function when its link says that the flow has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.clock import Clock
from plant.links.shared_link import Flow, SharedLink


class Caller:
    """Calls `then(arg)` at the end of its flow."""

    def __init__(self, then: Callable[[Any], object], arg: object) -> None:
        self._then, self._arg = then, arg

    def passed(self) -> None:
        self._then(self._arg)

    def delayed(self) -> None:
        raise AssertionError("a link that calls predicts nothing")

    retime = delayed


def join(clock: Clock, link: SharedLink, size_bytes: float, then: Callable[[Any], object], arg: object) -> Flow:
    """Put a flow on a link that calls `then(arg)` at its end."""
    return link.enter(size_bytes, Caller(then, arg), clock.now())
