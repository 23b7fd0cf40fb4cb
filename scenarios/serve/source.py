"""Requests as a `Source` of turns. The kernel sees turns that arrive and end; nothing here knows of HTTP either."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from orchestrator.clock import Clock
from orchestrator.rng import mix, stream_key, uniform
from orchestrator.turn import ClassName, KvChain, TurnId, TurnView
from plant.engines.exchange import Exchange
from plant.hidden_turns import HiddenTurn, HiddenTurns
from scenarios.serve.replies import Reply

SESSION_HEADERS = ("x-session-id", "x-session-affinity", "x-dynamo-session-id", "x-correlation-id")
MOST_SESSIONS = 200_000  # names of sessions that are remembered; the longest unused is forgotten first


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A request as the plant will see it.

    `session`: its name; None: it stands alone. `exchange`: what is sent to a real engine.
    """

    prompt_tokens: int
    context: KvChain
    output_tokens: int
    finish_reason: str
    session: str | None = None
    exchange: Exchange | None = None


def session_name(headers: Mapping[str, str]) -> str | None:
    """Return the name of a request's session from its headers, in the order in which clients prefer them."""
    return next((headers[name] for name in SESSION_HEADERS if headers.get(name)), None)


class RequestSource:
    """Turns that come from requests.

    Parameters
    ----------
    clock : Clock
    hidden_turns : HiddenTurns
    seed : int
    class_name : ClassName

    Attributes
    ----------
    replies, exchanges : dict
        Of the turns under way.
    """

    def __init__(self, clock: Clock, hidden_turns: HiddenTurns, seed: int, class_name: ClassName) -> None:
        self._clock, self._hidden, self._class = clock, hidden_turns, class_name
        self._keys, self._draws = stream_key(seed, "source requests"), stream_key(seed, "requests draw")
        self._arrive: Callable[[TurnView], None] | None = None
        self._sessions: OrderedDict[str, tuple[int, int]] = OrderedDict()  # name -> (id, turns so far)
        self._count = 0
        self.replies: dict[TurnId, Reply] = {}
        self.exchanges: dict[TurnId, Exchange] = {}

    @property
    def started(self) -> bool:
        """Whether requests may come."""
        return self._arrive is not None

    def submit(self, work: Work) -> Reply:
        """Let a request arrive now; its reply may have ended (been refused) by the time this returns.

        Raises
        ------
        RuntimeError
            The run has not begun.
        """
        if self._arrive is None:
            raise RuntimeError("a request came before the run began")
        turn_id = TurnId(self._count)
        self._count += 1
        key = mix(self._keys, turn_id)
        session_id, ordinal = self._session(work.session, turn_id)
        reply = Reply(turn_id, work.prompt_tokens, work.output_tokens, work.finish_reason, work.exchange)
        self.replies[turn_id] = reply
        if work.exchange is not None:
            self.exchanges[turn_id] = work.exchange
        self._hidden[turn_id] = HiddenTurn(work.output_tokens, (uniform(self._draws, key),))
        self._arrive(
            TurnView(
                turn_id=turn_id,
                key=key,
                class_name=self._class,
                session_id=session_id,
                ordinal=ordinal,
                arrived_s=self._clock.now(),
                prompt_tokens=work.prompt_tokens,
                context=work.context,
            )
        )
        return reply

    def _session(self, name: str | None, turn_id: TurnId) -> tuple[int, int]:
        if name is None:
            return int(turn_id), 0
        session_id, turns = self._sessions.pop(name, (int(turn_id), 0))
        self._sessions[name] = session_id, turns + 1
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session_id, turns

    # ------------------------------------------------ the Source port
    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Take requests from now on."""
        self._arrive = arrive

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Ignore admissions: clients send when they like."""

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Tell the request's handler."""
        self._hidden.forget(turn_id, outcome)
        self.exchanges.pop(turn_id, None)
        reply = self.replies.pop(turn_id, None)
        if reply is not None:
            reply.end(outcome)

    def exhausted(self) -> bool:
        """Return False: another request may come."""
        return False

    def abandon(self, outcome: str) -> None:
        """End every reply: the run is over."""
        for reply in list(self.replies.values()):
            reply.end(outcome)
        self.replies.clear()
