"""The ledger conserves turns whatever is done to it, and tells the story of a move that the table does not allow."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from orchestrator.errors import InvalidTransition
from orchestrator.ledger import (
    DECODING,
    FAILED,
    FILLING,
    READY,
    REJECTED,
    RETIRED,
    STAGES,
    TRANSITIONS,
    WAITING,
    Ledger,
    NotConserved,
    Stage,
    Turn,
)
from orchestrator.levels import TimeWeightedLevel
from orchestrator.turn import EMPTY_CHAIN, ClassName, TurnId, TurnView

CLASSES = (ClassName("chat"), ClassName("batch"))


def view(number: int, class_name: ClassName = CLASSES[0], at_s: float = 0.0) -> TurnView:
    return TurnView(TurnId(number), number, class_name, number, 0, at_s, 10, EMPTY_CHAIN)


class LedgerMachine(RuleBasedStateMachine):
    """Move turns at random, by the table and against it; count beside the ledger."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(CLASSES)
        self.now_s = 0.0
        self.born = 0
        self.stages: dict[int, Stage] = {}
        self.preempted = 0

    live = Bundle("live")

    @rule(target=live, class_name=st.sampled_from(CLASSES))
    def arrive(self, class_name: ClassName) -> Turn:
        turn = self.ledger.arrive(view(self.born, class_name, self.now_s))
        self.stages[self.born] = WAITING
        self.born += 1
        return turn

    @rule(step_s=st.floats(0.0, 10.0))
    def wait(self, step_s: float) -> None:
        self.now_s += step_s

    @rule(target=live, turn=consumes(live), to=st.sampled_from([FILLING, READY, DECODING]))
    def move(self, turn: Turn, to: Stage) -> Turn:
        start = turn.stage
        if to in TRANSITIONS.get(start, ()):
            if start is DECODING and to is READY:
                self.ledger.preempt(turn, self.now_s)
                self.preempted += 1
            elif start is WAITING:
                self.ledger.release(turn, self.now_s)
            else:
                self.ledger.move(turn, to, self.now_s)
            self.stages[turn.view.turn_id] = to
        else:
            with pytest.raises(InvalidTransition):
                self.ledger.move(turn, to, self.now_s)
            assert turn.stage is start
        return turn

    @rule(turn=consumes(live), how=st.sampled_from(["retire", "reject", "fail"]), bucket=st.sampled_from(["a", "b"]))
    def end(self, turn: Turn, how: str, bucket: str) -> None:
        start, to = turn.stage, {"retire": RETIRED, "reject": REJECTED, "fail": FAILED}[how]
        allowed = to in TRANSITIONS.get(start, ())
        argument = 5 if how == "retire" else bucket
        if allowed:
            getattr(self.ledger, how)(turn, argument, self.now_s)
            self.stages[turn.view.turn_id] = to
            assert turn.ended_s == self.now_s
        else:
            with pytest.raises(InvalidTransition):
                getattr(self.ledger, how)(turn, argument, self.now_s)

    @invariant()
    def every_turn_is_in_one_place(self) -> None:
        self.ledger.check()
        for stage in STAGES:
            assert self.ledger.count(stage) == sum(s is stage for s in self.stages.values())
        assert self.ledger.preempted == self.preempted


LedgerMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
test_the_ledger_conserves_turns_under_any_sequence_of_moves = LedgerMachine.TestCase


@pytest.mark.parametrize("stories", [True, False], ids=["every move kept", "from the turn's instants"])
def test_a_forbidden_move_tells_the_turns_story(stories: bool) -> None:
    ledger = Ledger(CLASSES, stories=stories)
    turn = ledger.arrive(view(7, at_s=1.5))
    ledger.release(turn, 2.0)
    ledger.first_token(turn, 3.25)
    ledger.move(turn, READY, 3.25)
    with pytest.raises(InvalidTransition, match=r"turn 7 may not go from ready to retired") as caught:
        ledger.retire(turn, 5, 4.0)
    assert caught.value.story == ((1.5, "waiting"), (2.0, "filling"), (3.25, "ready"))
    assert "waiting@1.5s -> filling@2s -> ready@3.25s" in str(caught.value)
    ledger.check()


def test_a_kept_story_holds_every_visit_to_the_batch() -> None:
    ledger = Ledger(CLASSES, stories=True)
    turn = ledger.arrive(view(1))
    ledger.release(turn, 1.0)
    for at_s, to in enumerate((READY, DECODING), 2):
        ledger.move(turn, to, at_s)
    ledger.preempt(turn, 4.0)
    ledger.move(turn, DECODING, 5.0)
    ledger.retire(turn, 3, 6.0)
    stages = ["waiting", "filling", "ready", "decoding", "ready", "decoding", "retired"]
    assert turn.story() == list(zip(range(7), stages))


def test_an_ended_turn_goes_nowhere() -> None:
    ledger = Ledger(CLASSES)
    turn = ledger.arrive(view(1))
    ledger.reject(turn, "shed", 1.0)
    for to in STAGES:
        with pytest.raises(InvalidTransition):
            ledger.move(turn, to, 2.0)
    assert turn.outcome == "rejected:shed"


def test_the_equation_prints_itself_and_a_broken_one_is_an_error() -> None:
    ledger = Ledger(CLASSES)
    ledger.arrive(view(1))
    ledger.reject(ledger.arrive(view(2)), "shed", 0.0)
    assert ledger.equation() == (
        "arrived 2 = waiting 1 + filling 0 + ready 0 + decoding 0 + retired 0 + rejected 1 + failed 0"
    )
    ledger.arrived += 1
    with pytest.raises(NotConserved, match="arrived 3"):
        ledger.check()


def test_a_turn_of_an_unknown_class_is_refused() -> None:
    with pytest.raises(KeyError):
        Ledger(CLASSES).arrive(view(1, ClassName("other")))


def test_a_turn_that_is_filled_twice_keeps_its_first_token() -> None:
    ledger = Ledger(CLASSES)
    turn = ledger.arrive(view(1, at_s=1.0))
    ledger.first_token(turn, 3.0)
    ledger.first_token(turn, 9.0)
    assert (turn.filled_s, ledger.ttft_sum_s, ledger.ttft_count) == (3.0, 2.0, 1)


@given(st.lists(st.tuples(st.floats(0.001, 5.0), st.integers(-3, 3)), min_size=1, max_size=30), st.floats(0.0, 1e6))
def test_a_levels_bin_is_its_time_weighted_mean_and_its_extremes(
    steps: list[tuple[float, int]], start_s: float
) -> None:
    level, now_s, area, seen = TimeWeightedLevel(5), start_s, 0.0, [5]
    for span_s, change in steps:
        area += span_s * level.value
        now_s += span_s
        level.add(change, now_s)
        seen.append(int(level.value))
    end_s = now_s + 1.0
    area += level.value
    mean, low, high = level.close(start_s, end_s)
    assert mean == pytest.approx(area / (end_s - start_s), abs=1e-4)
    assert (low, high) == (min(seen), max(seen))
    again = level.close(end_s, end_s + 2.0)
    assert again == (seen[-1], seen[-1], seen[-1])
