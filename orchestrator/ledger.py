"""The ledger: the stage of every turn by one transition table, and counts that show that none is lost. Sans-IO.

arrived = waiting + filling + ready + decoding + retired + rejected + failed
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NewType

from orchestrator.errors import InvalidTransition, SteadyflowError
from orchestrator.levels import TimeWeightedLevel
from orchestrator.turn import ClassName, TurnId, TurnView, WorkerId

NOWHERE = WorkerId(-1)
NEVER = float("nan")


Stage = NewType("Stage", int)
"""The stages of a turn, in the order of its life; the last three end it. Plain ints: a table is read twice as fast."""

STAGE_NAMES = ("waiting", "filling", "ready", "decoding", "retired", "rejected", "failed")
STAGES = tuple(Stage(k) for k in range(len(STAGE_NAMES)))
WAITING, FILLING, READY, DECODING, RETIRED, REJECTED, FAILED = STAGES
TRANSITIONS: dict[Stage, tuple[Stage, ...]] = {
    WAITING: (FILLING, REJECTED, FAILED),
    FILLING: (READY, FAILED),
    READY: (DECODING, FILLING, FAILED),  # FILLING again when its KV state was lost
    DECODING: (RETIRED, READY, FAILED),  # READY again when preempted, or when its worker was lost
}


class NotConserved(SteadyflowError):
    """The conservation equation does not hold."""


class Turn:
    """A turn under way: its view, its stage, and when each thing first happened (seconds; NaN: not yet).

    `turn_id` and `prompt_tokens` are the view's; a slot is read several times as fast as a NamedTuple's field.
    """

    __slots__ = (
        "bucket",
        "cached_tokens",
        "class_index",
        "decode_worker",
        "ended_s",
        "fill_started_s",
        "fill_worker",
        "filled_s",
        "joined_s",
        "losses",
        "moves",
        "output_tokens",
        "plant_future",
        "preemptions",
        "prompt_tokens",
        "released_s",
        "retries",
        "stage",
        "task",
        "turn_id",
        "view",
    )

    def __init__(self, view: TurnView, turn_id: TurnId, prompt_tokens: int, class_index: int) -> None:
        self.view, self.turn_id, self.prompt_tokens = view, turn_id, prompt_tokens
        self.class_index = class_index
        self.stage = WAITING
        self.moves: list[tuple[float, Stage]] | None = None
        self.released_s = self.fill_started_s = self.filled_s = self.joined_s = self.ended_s = NEVER
        self.fill_worker = self.decode_worker = NOWHERE
        self.cached_tokens = self.output_tokens = self.preemptions = self.retries = self.losses = 0
        self.bucket = ""
        self.task: asyncio.Task[None] | None = None
        self.plant_future: asyncio.Future[Any] | None = None  # the plant's last, done or not; Any: of whatever it gives

    def story(self) -> list[tuple[float, str]]:
        """Return every move so far, as (seconds, stage).

        Where the ledger keeps no stories, it is made of the instants that the turn carries, and a preempted turn's
        earlier visits to the batch are missing from it.
        """
        if self.moves is not None:
            return [(at_s, STAGE_NAMES[stage]) for at_s, stage in self.moves]
        moves = [(self.view.arrived_s, WAITING), (self.released_s, FILLING), (self.filled_s, READY)]
        moves += [(self.joined_s, DECODING), (self.ended_s, self.stage)]
        return [(at_s, STAGE_NAMES[stage]) for at_s, stage in moves if at_s == at_s]

    @property
    def outcome(self) -> str:
        """Return `retired`, `rejected:<bucket>`, `failed:<bucket>`, or the stage that the turn is in."""
        name = STAGE_NAMES[self.stage]
        return f"{name}:{self.bucket}" if self.bucket else name


class ClassCounts:
    """Counts of one service class."""

    __slots__ = ("arrived", "backlog", "in_flight", "name", "prompt_tokens", "retired")

    def __init__(self, name: ClassName) -> None:
        self.name = name
        self.arrived = self.backlog = self.in_flight = self.retired = self.prompt_tokens = 0


class Ledger:
    """Counts of turns by stage, kept as levels that the recorder reads.

    Parameters
    ----------
    classes : sequence of ClassName
        The service classes; a turn of another class is refused with KeyError.
    stories : bool
        Keep every move of every turn, at half a kilobyte a turn.
    """

    def __init__(self, classes: Sequence[ClassName], stories: bool = False) -> None:
        self._stories = stories
        self.levels = tuple(TimeWeightedLevel() for _ in STAGES)
        # What a move from one stage to another changes: the two levels, or None where the table does not allow it.
        self._passages = tuple(
            tuple((self.levels[start], self.levels[to]) if to in TRANSITIONS.get(start, ()) else None for to in STAGES)
            for start in STAGES
        )
        self.in_flight = TimeWeightedLevel()
        self.classes = [ClassCounts(name) for name in classes]
        self.index = {name: i for i, name in enumerate(classes)}
        self.arrived = self.released = self.retired = self.preempted = self.prompt_tokens = 0
        self.ttft_sum_s = self.tpot_sum_s = 0.0
        self.ttft_count = self.tpot_count = 0
        self.rejected: dict[str, int] = {}
        self.failed: dict[str, int] = {}

    def arrive(self, view: TurnView) -> Turn:
        """Enter a new turn as waiting."""
        turn_id, _, class_name, _, _, arrived_s, prompt_tokens, _ = view
        turn = Turn(view, turn_id, prompt_tokens, self.index[class_name])
        if self._stories:
            turn.moves = [(arrived_s, WAITING)]
        counts = self.classes[turn.class_index]
        counts.arrived += 1
        counts.backlog += 1
        counts.prompt_tokens += prompt_tokens
        self.arrived += 1
        self.prompt_tokens += prompt_tokens
        waiting = self.levels[WAITING]
        waiting.value = value = waiting.value + 1
        waiting.moment += arrived_s
        if value > waiting.high:
            waiting.high = value
        return turn

    def move(self, turn: Turn, to: Stage, now_s: float) -> None:
        """Move a turn; raise InvalidTransition with its story where the table does not allow it.

        A waiting turn is moved by `release`, `reject` and `fail` alone, which count it by class too.
        """
        start = turn.stage
        levels = self._passages[start][to]
        if levels is None:
            raise InvalidTransition(f"turn {turn.turn_id}", STAGE_NAMES[start], STAGE_NAMES[to], turn.story())
        turn.stage = to
        if turn.moves is not None:
            turn.moves.append((now_s, to))
        # Level.add, written out here and in `release` and `_leave`: this runs four times a turn.
        left, entered = levels
        left.value = value = left.value - 1
        left.moment -= now_s
        if value < left.low:
            left.low = value
        entered.value = value = entered.value + 1
        entered.moment += now_s
        if value > entered.high:
            entered.high = value

    def release(self, turn: Turn, now_s: float) -> None:
        """Let a waiting turn in: it is filled next."""
        self.move(turn, FILLING, now_s)
        turn.released_s = now_s
        self.released += 1
        counts = self.classes[turn.class_index]
        counts.backlog -= 1
        counts.in_flight += 1
        flying = self.in_flight
        flying.value = value = flying.value + 1
        flying.moment += now_s
        if value > flying.high:
            flying.high = value

    def first_token(self, turn: Turn, now_s: float) -> None:
        """Note the first token; a turn that is filled again keeps its first one."""
        if turn.filled_s != turn.filled_s:  # NaN: not yet
            turn.filled_s = now_s
            self.ttft_sum_s += now_s - turn.view.arrived_s
            self.ttft_count += 1

    def retire(self, turn: Turn, output_tokens: int, now_s: float) -> None:
        """Close a turn whose answer is complete."""
        self.move(turn, RETIRED, now_s)
        turn.ended_s = now_s
        counts = self._leave(turn)
        counts.retired += 1
        turn.output_tokens = output_tokens
        self.retired += 1
        if output_tokens > 1:
            self.tpot_sum_s += (now_s - turn.filled_s) / (output_tokens - 1)
            self.tpot_count += 1

    def preempt(self, turn: Turn, now_s: float) -> None:
        """Move a turn back from decoding to ready, counted."""
        self.move(turn, READY, now_s)
        turn.preemptions += 1
        self.preempted += 1

    def reject(self, turn: Turn, bucket: str, now_s: float) -> None:
        """Refuse a waiting turn, counted in `bucket`."""
        self.move(turn, REJECTED, now_s)
        self.classes[turn.class_index].backlog -= 1
        turn.ended_s, turn.bucket = now_s, bucket
        self.rejected[bucket] = self.rejected.get(bucket, 0) + 1

    def fail(self, turn: Turn, bucket: str, now_s: float) -> None:
        """End a turn that cannot go on, counted in `bucket`."""
        waiting = turn.stage is WAITING
        self.move(turn, FAILED, now_s)
        turn.ended_s, turn.bucket = now_s, bucket
        if waiting:
            self.classes[turn.class_index].backlog -= 1
        else:
            self._leave(turn)
        self.failed[bucket] = self.failed.get(bucket, 0) + 1

    def _leave(self, turn: Turn) -> ClassCounts:
        counts = self.classes[turn.class_index]
        counts.in_flight -= 1
        flying = self.in_flight
        flying.value = value = flying.value - 1
        flying.moment -= turn.ended_s
        if value < flying.low:
            flying.low = value
        return counts

    def count(self, stage: Stage) -> int:
        """Return how many turns are in a stage now."""
        return int(self.levels[stage].value)

    def equation(self) -> str:
        """Return the conservation equation with its numbers, as one line."""
        terms = " + ".join(f"{STAGE_NAMES[stage]} {self.count(stage)}" for stage in STAGES)
        return f"arrived {self.arrived} = {terms}"

    def check(self) -> None:
        """Raise NotConserved unless every count agrees with every other."""
        stages = sum(self.count(stage) for stage in STAGES)
        flying = self.count(FILLING) + self.count(READY) + self.count(DECODING)
        agree = (
            stages == self.arrived
            and flying == int(self.in_flight.value) == sum(c.in_flight for c in self.classes)
            and self.count(WAITING) == sum(c.backlog for c in self.classes)
            and self.count(RETIRED) == self.retired == sum(c.retired for c in self.classes)
            and self.count(REJECTED) == sum(self.rejected.values())
            and self.count(FAILED) == sum(self.failed.values())
        )
        if not agree:
            raise NotConserved(self.equation())
