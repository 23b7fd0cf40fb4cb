"""`Reply`: what has become of one request, for the handler that waits for its tokens."""

from __future__ import annotations

import asyncio

from plant.engines.exchange import Exchange

RETIRED = "retired"


class Reply:
    """How many tokens of an answer exist, and how it ended.

    Parameters
    ----------
    turn_id : int
    prompt_tokens, output_tokens : int
        Of the whole turn.
    finish_reason : str
        What the last chunk says.

    Attributes
    ----------
    tokens : int
        Those that exist by now.
    cached_tokens : int
        Of the prompt; known from the first token on.
    exchange : Exchange or None
        The engine's own bytes, where a real engine answers.
    outcome : str
        `retired`, or the bucket of its rejection or failure; empty: it is under way.
    """

    __slots__ = (
        "_waiter",
        "cached_tokens",
        "exchange",
        "finish_reason",
        "outcome",
        "output_tokens",
        "prompt_tokens",
        "tokens",
        "turn_id",
    )

    def __init__(
        self,
        turn_id: int,
        prompt_tokens: int,
        output_tokens: int,
        finish_reason: str,
        exchange: Exchange | None = None,
    ) -> None:
        self.exchange = exchange
        self.turn_id, self.prompt_tokens, self.output_tokens = turn_id, prompt_tokens, output_tokens
        self.finish_reason = finish_reason
        self.tokens = self.cached_tokens = 0
        self.outcome = ""
        self._waiter: asyncio.Future[None] | None = None

    def reach(self, tokens: int) -> None:
        """Say that so many tokens exist; what a later fill makes again is not news."""
        if tokens > self.tokens:
            self.tokens = min(tokens, self.output_tokens)
            self._wake()

    def end(self, outcome: str) -> None:
        """Say how it ended; the first ending stands."""
        if not self.outcome:
            self.outcome = outcome
            if outcome == RETIRED:
                self.tokens = self.output_tokens
            self._wake()
            if self.exchange is not None:
                self.exchange.wake()

    async def changed(self) -> None:
        """Wait for more tokens or the end."""
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
