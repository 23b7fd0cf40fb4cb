"""One engine, and one turn at it."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.ports import Filled, Retired
from orchestrator.turn import TurnId, TurnView, WorkerId
from plant.engines.exchange import Exchange
from plant.engines.upstream import Upstream, UpstreamSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """One engine: where it is, and how many turns it takes at once."""

    upstream: UpstreamSpec
    slots: int


class Engine:
    """The state of one engine.

    Attributes
    ----------
    up : bool
        It answers its probe.
    work : dict
        Its turns.
    served, tokens : int
        Answers and tokens since the start.
    """

    def __init__(self, worker: WorkerId, spec: EngineSpec, upstream: Upstream) -> None:
        self.worker, self.spec, self.upstream = worker, spec, upstream
        self.up = True
        self.epoch = 0
        self.work: dict[TurnId, Work] = {}
        self.served = self.tokens = 0


class Work:
    """One turn at an engine.

    Attributes
    ----------
    fill, decode : Future or None
        What the orchestrator waits for.
    filled : bool
        Its first content has come.
    retired : Retired or None
        Its answer is whole.
    task : Task or None
        What passes the request on.
    """

    def __init__(
        self, engine: Engine, turn: TurnView, exchange: Exchange, started_s: float, leave: Callable[[Work], None]
    ) -> None:
        self.engine, self.turn, self.exchange, self.started_s = engine, turn, exchange, started_s
        self._leave = leave
        self.fill: Future[Filled] | None = None
        self.decode: Future[Retired] | None = None
        self.filled = False
        self.joined_s = started_s
        self.retired: Retired | None = None
        self.task: asyncio.Task[None] | None = None

    def withdraw(self) -> None:
        """Drop the request; closing its connection tells the engine."""
        self.fill = self.decode = None
        self._leave(self)
