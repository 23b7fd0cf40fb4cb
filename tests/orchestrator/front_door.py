"""A front door with nothing behind it, for tests of admission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from orchestrator.admission import AdmissionLimits, AdmissionQueue, ClassSpec
from orchestrator.ledger import READY, Ledger, Turn
from orchestrator.messages import AdmissionCommand
from orchestrator.turn import EMPTY_CHAIN, ClassName, TurnId, TurnView
from orchestrator.virtual_clock import VirtualClock, run_virtual

A, B, C = ClassName("a"), ClassName("b"), ClassName("c")


class Front:
    """A door with nothing behind it: released turns stay in flight until a test ends them."""

    def __init__(self, clock: VirtualClock, *classes: ClassSpec, **limits: Any) -> None:
        specs = list(classes) or [ClassSpec(name=A)]
        self.clock = clock
        self.ledger = Ledger([spec.name for spec in specs])
        self.released: list[tuple[float, TurnId]] = []
        self.turns: dict[TurnId, Turn] = {}
        self.door = AdmissionQueue(clock, self.ledger, specs, AdmissionLimits(**limits), 77, self._let_in)

    def _let_in(self, turn: Turn) -> None:
        self.released.append((self.clock.now(), turn.view.turn_id))

    def come(self, class_name: ClassName = A, arrived_s: float | None = None) -> str | None:
        turn_id = TurnId(len(self.turns))
        at_s = self.clock.now() if arrived_s is None else arrived_s
        turn = self.ledger.arrive(TurnView(turn_id, turn_id, class_name, turn_id, 0, at_s, 1, EMPTY_CHAIN))
        self.turns[turn_id] = turn
        refusal = self.door.refusal(turn)
        if refusal is not None:
            self.ledger.reject(turn, refusal, self.clock.now())
        else:
            self.door.enter(turn)
        return refusal

    def end(self, turn_id: TurnId) -> None:
        turn, now_s = self.turns[turn_id], self.clock.now()
        self.ledger.move(turn, READY, now_s)
        self.ledger.fail(turn, "done", now_s)
        self.door.pump()

    def set(self, **command: Any) -> None:
        self.door.set(AdmissionCommand(**command))

    def order(self) -> list[int]:
        return [turn_id for _, turn_id in self.released]

    def times(self) -> list[float]:
        return [at_s for at_s, _ in self.released]


def door_test(body: Callable[[VirtualClock], Any]) -> Callable[[], None]:
    """Run a coroutine test on a virtual clock."""

    def test() -> None:
        run_virtual(body)

    test.__name__, test.__doc__ = body.__name__, body.__doc__
    return test
