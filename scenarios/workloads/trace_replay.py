"""Source that replays requests by time stamp: each at its recorded instant, independent of the ones before it.

    played instant = (stamp - first stamp, with every gap above the idle cap cut to the cap) / rate factor

The rate factor scales INTERVALS from the first stamp, the cap with them: the cap is in recorded seconds. Only
the next request is scheduled on the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from orchestrator.rng import mix, stream_key, uniform
from orchestrator.turn import KvChain, KvRun, TurnId, TurnView
from plant.hidden_turns import HiddenTurn
from scenarios.errors import UserError
from scenarios.workloads.blocks import Run
from scenarios.workloads.corpus import Corpus
from scenarios.workloads.player import SESSION_MASK, SourceContext


class Row(NamedTuple):
    """One request of the replay; `place` is (conversation, stream, ordinal)."""

    at_s: float
    place: tuple[int, int, int]
    prompt_tokens: int
    output_tokens: int
    service_s: float | None
    runs: list[Run]


def time_line(
    corpus: Corpus,
    *,
    rate_factor: float = 1.0,
    idle_cap_s: float | None = None,
    from_s: float | None = None,
    to_s: float | None = None,
) -> list[Row]:
    """Return the corpus's requests by played instant, seconds from the first one that is kept.

    Parameters
    ----------
    corpus : Corpus
        Independent rows, or conversations whose source has a shared clock (`start_s`).
    rate_factor : float
        2.0 plays twice as fast.
    idle_cap_s : float, optional
        The longest gap, in recorded seconds.
    from_s, to_s : float, optional
        Keep stamps from and up to these, both inclusive, recorded seconds after the first stamp.

    Raises
    ------
    UserError
        Conversations have no shared clock, or no request is left.
    """
    if not rate_factor > 0.0:
        raise UserError(f"rate_factor = {rate_factor}; more than 0 was expected")
    rows = sorted(_stamped(corpus), key=lambda row: (row.at_s, row.place))
    first_s = rows[0].at_s if rows else 0.0
    low, high = from_s if from_s is not None else float("-inf"), to_s if to_s is not None else float("inf")
    kept = [row for row in rows if low <= row.at_s - first_s <= high]
    if not kept:
        raise UserError(f"{corpus.name}: no request lies between {from_s} s and {to_s} s of its first stamp")
    played, out, before = 0.0, [], kept[0].at_s
    for row in kept:
        gap = row.at_s - before
        played += gap if idle_cap_s is None else min(gap, idle_cap_s)
        before = row.at_s
        out.append(row._replace(at_s=played / rate_factor))
    return out


def _stamped(corpus: Corpus) -> list[Row]:
    rows = []
    for c, conversation in enumerate(corpus.conversations):
        if conversation.start_s is None:
            raise UserError(
                f"{corpus.name}: conversation {conversation.name!r} has no clock shared with the others; "
                "replay it in lanes or as arriving sessions, not by time stamp"
            )
        for s, stream in enumerate(conversation.streams):
            service = stream.service_s.tolist()
            columns = zip(stream.t_s.tolist(), stream.prompt_tokens.tolist(), stream.output_tokens.tolist())
            runs = stream.all_runs()
            for k, (t, prompt, output) in enumerate(columns):
                served = None if service[k] != service[k] else service[k]
                rows.append(Row(conversation.start_s + t, (c, s, k), prompt, output, served, runs[k]))
    return rows


class TraceReplay:
    """Replay of time-stamped rows; satisfies the `Source` protocol.

    Block ids have one scope where they are global, else one for each conversation.
    """

    def __init__(
        self,
        context: SourceContext,
        rows: list[Row],
        *,
        block_tokens: int,
        global_scope: bool,
        seed: int,
        name: str = "replay",
    ) -> None:
        self._context = context
        self._rows = rows
        self._block_tokens = block_tokens
        self._global = global_scope
        self._root = stream_key(seed, f"workload.{name}.key")
        self._arrive: Callable[[TurnView], None] = lambda turn: None
        self._next_row = 0

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Begin with the first row."""
        self._arrive = arrive
        self._origin_s = self._context.clock.now()
        self._plan()

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Ignore admissions: the replay does not depend on them."""

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Forget the hidden half of a turn that has ended; the replay does not depend on it."""
        self._context.hidden_turns.forget(turn_id, outcome)

    def exhausted(self) -> bool:
        """Return True after the last row."""
        return self._next_row == len(self._rows)

    def _plan(self) -> None:
        if self._next_row < len(self._rows):
            self._context.clock.at(self._origin_s + self._rows[self._next_row].at_s, self._fire, None)

    def _fire(self, _: None) -> None:
        row = self._rows[self._next_row]
        self._next_row += 1
        context = self._context
        c, s, k = row.place
        session = mix(mix(self._root, c), s)
        key = mix(session, k)
        turn_id = TurnId(next(context.births))
        draws = tuple(uniform(context.draw_stream, key, j) for j in range(context.draws))
        context.hidden_turns[turn_id] = HiddenTurn(row.output_tokens, draws, row.service_s)
        scope = self._root if self._global else mix(self._root, c)
        chain = KvChain(tuple(KvRun(scope, first, count) for first, count in row.runs), self._block_tokens)
        now_s = context.clock.now()
        owner = (key if self._global else session) & SESSION_MASK
        self._plan()
        self._arrive(TurnView(turn_id, key, context.class_name, owner, k, now_s, row.prompt_tokens, chain))
