"""Clients that come back: a turn that was refused or has failed is sent again, after a backoff, within a budget.

Each attempt is a turn of its own in the record, with an id from `FIRST_RETURN` on and a key of its own; it has the
lengths, the session and the place in it of the first. The source hears of the turn's end once, when it is given up or
has ended well. (Retries that feed an overload: Bronson et al., Metastable failures in distributed systems, HotOS 2021;
backoff with jitter and a budget: Beyer et al., Site Reliability Engineering, 2016, chapter 22.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from orchestrator.clock import Clock
from orchestrator.ports import Source
from orchestrator.rng import mix, uniform
from orchestrator.turn import TurnId, TurnView
from plant.hidden_turns import HiddenTurn, HiddenTurns
from scenarios.workloads.player import Counted

FIRST_RETURN = 1 << 40
"""Ids of attempts after the first begin here, above those of every source."""
FOR_GOOD = frozenset({"retired", "context_overflow", "draining", "cancelled", "drain_deadline", "quarantined"})
"""Outcomes after which nobody comes back: the same request would meet the same end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnSpec:
    """How clients come back: see `scenarios.schema.faults.ClientsPart`."""

    attempts: int
    wait_s: float
    backoff_ratio: float
    most_wait_s: float
    jitter_ratio: float
    budget_ratio: float | None

    def pause_s(self, attempt: int, drawn: float) -> float:
        """Return the wait before attempt 1, 2, ...; `drawn` is uniform in (0, 1)."""
        wait_s = min(self.most_wait_s, self.wait_s * self.backoff_ratio ** (attempt - 1))
        return wait_s * (1.0 - self.jitter_ratio * drawn)


@dataclass(slots=True)
class _Sent:
    first: TurnView
    hidden: HiddenTurn
    attempt: int


class Returning:
    """A source whose clients come back.

    Parameters
    ----------
    source : Source
    clock : Clock
    hidden_turns : HiddenTurns
    spec : ReturnSpec
    stream : int
        Key of the random stream of jitter.
    """

    def __init__(self, source: Source, clock: Clock, hidden_turns: HiddenTurns, spec: ReturnSpec, stream: int) -> None:
        self._source, self._clock, self._hidden, self._spec, self._stream = source, clock, hidden_turns, spec, stream
        self._arrive: Callable[[TurnView], None] = lambda turn: None
        self._live: dict[TurnId, _Sent] = {}
        self._ids = count(FIRST_RETURN)
        self._first_turns = self._returns = self._given_up = self._away = 0

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Start the source."""
        self._arrive = arrive
        self._source.start(self._send_first)

    def _send_first(self, turn: TurnView) -> None:
        self._first_turns += 1
        self._live[turn.turn_id] = _Sent(turn, self._hidden[turn.turn_id], 0)
        self._arrive(turn)

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Forward an admission."""
        self._source.admitted(self._live[turn_id].first.turn_id, at_s)

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Send the turn again later, or tell the source of its end."""
        sent = self._live.pop(turn_id)
        if outcome in FOR_GOOD or not self._may_return(sent):
            self._given_up += outcome != "retired"
            if sent.attempt:
                self._hidden.forget(turn_id, outcome)
            self._source.ended(sent.first.turn_id, at_s, outcome)
            return
        self._hidden.forget(turn_id, outcome)
        sent.attempt += 1
        self._returns += 1
        self._away += 1
        pause_s = self._spec.pause_s(sent.attempt, uniform(self._stream, sent.first.key, sent.attempt))
        self._clock.at(at_s + pause_s, self._send_again, sent)

    def _may_return(self, sent: _Sent) -> bool:
        budget = self._spec.budget_ratio
        within = budget is None or self._returns < budget * self._first_turns
        return sent.attempt < self._spec.attempts and within

    def _send_again(self, sent: _Sent) -> None:
        self._away -= 1
        turn_id = TurnId(next(self._ids))
        self._live[turn_id] = sent
        self._hidden[turn_id] = sent.hidden
        key = mix(sent.first.key, sent.attempt)
        self._arrive(sent.first._replace(turn_id=turn_id, key=key, arrived_s=self._clock.now()))

    def exhausted(self) -> bool:
        """Return True when no first turn will arrive and nobody is on the way back."""
        return self._source.exhausted() and not self._away

    def statistics(self) -> dict[str, float]:
        """Return the source's counts, and how many attempts and turns given up there were."""
        counts = self._source.statistics() if isinstance(self._source, Counted) else {}
        return {**counts, "turns_sent_again": self._returns, "turns_given_up": self._given_up}
