"""`Exchange`: one request to an engine and what comes back, byte for byte, for whoever passes it on."""

from __future__ import annotations

import asyncio
from collections import deque

import orjson

MOST_BUFFERED_BYTES = 1 << 20  # a client that reads slowly holds its engine's stream back beyond this


class Exchange:
    """A request, and its answer as it comes.

    Parameters
    ----------
    path : str
        As `/v1/chat/completions`.
    body : dict
        The request's JSON.
    stream : bool
        Whether a stream of events is asked for.
    keep_usage : bool
        Whether the client asked for the chunk of usage; the engine is asked for it in any case.

    Attributes
    ----------
    status, content_type
        Of the answer; 0: none has begun.
    whole : bool
        The answer has come to its end.
    """

    def __init__(self, path: str, body: dict[str, object], stream: bool, keep_usage: bool) -> None:
        self.path, self.stream, self.keep_usage = path, stream, keep_usage
        self._body = body
        self.status, self.content_type = 0, ""
        self.complete = False
        self._parts: deque[bytes] = deque()
        self._buffered = 0
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    def request(self, model: str | None) -> bytes:
        """Return the body for an engine that knows the model by this name (None: by the client's)."""
        body = self._body if model is None else {**self._body, "model": model}
        if self.stream:
            options = body.get("stream_options")
            asked = {**(options if isinstance(options, dict) else {}), "include_usage": True}
            body = {**body, "stream_options": asked}
        return orjson.dumps(body)

    # ------------------------------------------------ the engine's side
    def begin(self, status: int, content_type: str) -> None:
        """Say that an answer has begun."""
        self.status, self.content_type = status, content_type
        _wake(self._news)

    async def feed(self, part: bytes) -> None:
        """Pass bytes on; waits while too many have not been read."""
        while self._buffered > MOST_BUFFERED_BYTES:
            self._room = asyncio.get_running_loop().create_future()
            await self._room
        self._buffered += len(part)
        self._parts.append(part)
        _wake(self._news)

    def finish(self) -> None:
        """Say that every byte has come."""
        self.complete = True
        _wake(self._news)

    # ------------------------------------------------ the client's side
    def take(self) -> bytes:
        """Return what has come since the last call."""
        taken = b"".join(self._parts)
        self._parts.clear()
        self._buffered = 0
        _wake(self._room)
        return taken

    async def changed(self) -> None:
        """Wait for more; returns at once if some is there."""
        if not self._parts and not self.complete:
            self._news = asyncio.get_running_loop().create_future()
            await self._news

    def wake(self) -> None:
        """Let the client's side look again."""
        _wake(self._news)


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
