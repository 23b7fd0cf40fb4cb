"""Small worlds for tests of the kernel: a sink in memory, a scripted source, and a plant that preempts and loses."""

from __future__ import annotations

import math
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from orchestrator.admission import AdmissionLimits, ClassSpec
from orchestrator.clock import Clock
from orchestrator.errors import ContextOverflow, Preempted, WorkerLost
from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.orchestrator import Orchestrator, OrchestratorSpec
from orchestrator.ports import Every, Filled, On, Retired, Staged
from orchestrator.turn import EMPTY_CHAIN, ClassName, KvRef, TurnId, TurnView, WorkerId
from orchestrator.virtual_clock import VirtualClock
from orchestrator.virtual_loop import VirtualLoop
from plant.hidden_turns import HiddenTurn, HiddenTurns
from plant.theory.tandem import Residence, Tandem
from policies.routing.least_loaded import LeastLoaded

CHAT, BATCH = ClassName("chat"), ClassName("batch")


class ListSink:
    """The record as plain lists."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.bins: dict[str, list[float]] = {}
        self.events: list[dict[str, object]] = []

    def turns(self, columns: Any, classes: Sequence[str], outcomes: Sequence[str]) -> None:
        for values in zip(*columns.values()):
            row = dict(zip(columns, values))
            self.rows.append(row | {"class": classes[row["class"]], "outcome": outcomes[row["outcome"]]})

    def signals(self, columns: Any) -> None:
        self.bins = {name: list(values) for name, values in columns.items()}

    def event(self, event: Any) -> None:
        self.events.append(dict(event))

    def kinds(self) -> list[object]:
        return [event["kind"] for event in self.events]

    def outcomes(self) -> dict[int, str]:
        return {row["turn_id"]: row["outcome"] for row in self.rows}


class Coming(NamedTuple):
    """One turn that will arrive: `draw` is the uniform of its residence."""

    at_s: float
    class_name: ClassName = CHAT
    draw: float = 0.5
    output_tokens: int = 10


class Scripted:
    """A law that gives its commands one after the other, and then the last one."""

    def __init__(self, *commands: AdmissionCommand, cadence: Every | On | None = None) -> None:
        self.cadence = cadence or Every(period_s=1.0)
        self._commands = list(commands)
        self.seen: list[AdmissionReading] = []

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        self.seen.append(y)
        return self._commands.pop(0) if len(self._commands) > 1 else self._commands[0]


class Script:
    """A source that plays a list of arrivals and keeps what it hears."""

    def __init__(self, clock: Clock, hidden_turns: HiddenTurns, coming: Sequence[Coming]) -> None:
        self._clock, self._hidden_turns, self._coming = clock, hidden_turns, sorted(coming, key=lambda c: c.at_s)
        self._arrive: Callable[[TurnView], None] | None = None
        self._come = 0
        self.admissions: list[tuple[int, float]] = []
        self.endings: list[tuple[int, float, str]] = []

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        self._arrive = arrive
        for number, coming in enumerate(self._coming):
            self._hidden_turns[TurnId(number)] = HiddenTurn(coming.output_tokens, (coming.draw,))
            self._clock.at(coming.at_s, self._arrives, number)

    def _arrives(self, number: int) -> None:
        assert self._arrive is not None
        coming = self._coming[number]
        self._come += 1
        self._arrive(
            TurnView(TurnId(number), 1000 + number, coming.class_name, number, 0, self._clock.now(), 100, EMPTY_CHAIN)
        )

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        self.admissions.append((turn_id, at_s))

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        self.endings.append((turn_id, at_s, outcome))

    def exhausted(self) -> bool:
        return self._come == len(self._coming)


class Troubled(Tandem):
    """A tandem plant whose turns meet trouble: one word an attempt, `ok` once a turn's words are used up.

    `preempt` and `lose` end a decode half-way, `overflow` ends it at its start, `lose_fill` ends a fill half-way.
    """

    def __init__(self, *args: Any, troubles: dict[int, list[str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self._troubles = {turn: list(words) for turn, words in troubles.items()}

    def _next(self, turn: TurnView, words: tuple[str, ...]) -> str:
        mine = self._troubles.get(turn.turn_id)
        return mine.pop(0) if mine and mine[0] in words else "ok"

    def fill(self, worker: WorkerId, turn: TurnView, prefix: KvRef) -> Future[Filled]:
        work = super().fill(worker, turn, prefix)
        if self._next(turn, ("lose_fill",)) != "ok":
            self._break_off(work, WorkerLost("the fill worker is gone"), self.dead_time_s)
        return work

    def decode(self, worker: WorkerId, turn: TurnView, kv: Staged) -> Future[Retired]:
        work = super().decode(worker, turn, kv)
        word = self._next(turn, ("preempt", "lose", "overflow"))
        if word != "ok":
            errors = {"preempt": Preempted(), "lose": WorkerLost("gone"), "overflow": ContextOverflow("too large")}
            self._break_off(work, errors[word], 0.0 if word == "overflow" else self.residence.mean_s)
        return work

    def _break_off(self, work: Any, error: Exception, span_s: float) -> None:
        under_way: dict[Any, Any] = self._fills if work in self._fills else self._decodes
        entry, value = under_way[work]
        self._clock.cancel_at(entry)

        def breaks(_: object) -> None:
            del under_way[work]
            work.set_exception(error)

        under_way[work] = self._clock.at(self._clock.now() + 0.5 * span_s, breaks, None), value

    @property
    def idle(self) -> bool:
        return not self._decodes and not self._fills


class World:
    """An orchestrator on a clock with everything that a test may look at."""

    def __init__(
        self,
        clock: Clock,
        coming: Sequence[Coming],
        *,
        slots: int = 2,
        dead_time_s: float = 1.0,
        residence: Residence | None = None,
        troubles: dict[int, list[str]] | None = None,
        laws: dict[Any, Any] | None = None,
        door: AdmissionLimits | None = None,
        classes: tuple[ClassSpec, ...] = (ClassSpec(name=CHAT), ClassSpec(name=BATCH)),
        horizon_s: float = 1000.0,
        **spec: Any,
    ) -> None:
        self.clock, self.sink, hidden_turns = clock, ListSink(), HiddenTurns()
        self.source = Script(clock, hidden_turns, coming)
        residence = residence or Residence(mean_s=2.0, shape="fixed")
        self.plant = Troubled(
            clock, hidden_turns, slots=slots, dead_time_s=dead_time_s, residence=residence, troubles=troubles or {}
        )
        orchestrator_spec = OrchestratorSpec(
            seed=1, horizon_s=horizon_s, classes=classes, admission=door or AdmissionLimits(), **spec
        )
        self.orchestrator = Orchestrator(
            clock, orchestrator_spec, self.plant, self.source, laws or {}, [LeastLoaded()], [LeastLoaded()], self.sink
        )
        self.ledger = self.orchestrator.ledger

    async def run(self) -> str:
        """Run to the end; the laws that hold in every world are checked there."""
        why = await self.orchestrator.run()
        self.ledger.check()
        recorded = sorted(row["turn_id"] for row in self.sink.rows)
        assert recorded == sorted(set(recorded)), "a turn was recorded twice"
        assert len(recorded) == self.ledger.arrived, "a turn was not recorded"
        heard = [turn_id for turn_id, _, _ in self.source.endings]
        assert len(heard) == len(set(heard)), "the source heard of an ending twice"
        assert {name for name, values in self.sink.bins.items() if len(values) != len(self.sink.bins["t_s"])} == set()
        return why


def burst(number: int, at_s: float = 0.0, class_name: ClassName = CHAT) -> list[Coming]:
    """Return turns that arrive at one instant."""
    return [Coming(at_s, class_name) for _ in range(number)]


def is_nan(value: float) -> bool:
    return math.isnan(value)


def on_loop(main: Callable[[VirtualClock], Any], start_s: float = 0.0, **options: Any) -> Any:
    """Run on a loop that a test can give a smaller cap, and close it."""
    loop = VirtualLoop(start_s, **options)
    try:
        return loop.run_until_complete(main(VirtualClock(loop)))
    finally:
        loop.close()
