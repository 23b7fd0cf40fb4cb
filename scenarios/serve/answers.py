"""Answers on their way to clients: streams and whole bodies, errors, and clients that go away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.types import Receive, Send

from orchestrator.clock import Clock
from scenarios.serve.asks import Ask, RefusedAsk
from scenarios.serve.figures import Latencies
from scenarios.serve.replies import RETIRED, Reply
from scenarios.serve.wire import DONE, Format, error_body, error_event

GONE = "client_gone"
# Of a turn that ended without a token: the status, the code and what to say. Any other bucket is the server's fault.
REFUSALS = {
    "queue_full": (429, "queue_full", "too many requests wait; try again later"),
    "shed": (429, "shed", "this request was shed to protect others; try again later"),
    "draining": (503, "draining", "the server is about to stop"),
    "context_overflow": (400, "context_length_exceeded", "the prompt exceeds this model's maximum context length"),
    "worker_lost": (502, "worker_lost", "the worker was lost, and so were those of every retry"),
    "stopped": (503, "stopped", "the server stopped before it had answered"),
}


class Answers:
    """Sends answers.

    Parameters
    ----------
    clock : Clock
    epoch_s : callable
        Returns the seconds since 1970, which OpenAI's format wants.
    cancel : callable
        Takes a turn that nobody waits for any more off the plant.
    retry_after_s : callable
        Returns how long a refused client should wait, in whole seconds of the wall.
    latencies : Latencies

    Attributes
    ----------
    open_streams : int
        Answers under way.
    generated_tokens : int
        Sent since the start.
    """

    def __init__(
        self,
        clock: Clock,
        epoch_s: Callable[[], float],
        cancel: Callable[[Reply], None],
        retry_after_s: Callable[[], int],
        latencies: Latencies,
    ) -> None:
        self.clock, self._epoch_s, self._cancel = clock, epoch_s, cancel
        self._retry_after_s, self.latencies = retry_after_s, latencies
        self.open_streams = self.generated_tokens = 0

    async def answer(self, ask: Ask, reply: Reply, receive: Receive, send: Send) -> None:
        """Send an answer as it comes; a client that goes away cancels its turn at once."""
        self.open_streams += 1
        watch = asyncio.ensure_future(self._watch(reply, receive))
        try:
            await self._send(ask, reply, send)
        finally:
            self.open_streams -= 1
            watch.cancel()
            self._leave(reply)

    async def refuse(self, refused: RefusedAsk, send: Send) -> None:
        """Send an error response."""
        headers = [(b"content-type", b"application/json")]
        if refused.status in (429, 503):
            headers.append((b"retry-after", str(self._retry_after_s()).encode()))
        await send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await send({"type": "http.response.body", "body": error_body(refused.status, refused.code, str(refused))})

    async def _watch(self, reply: Reply, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._leave(reply)

    def _leave(self, reply: Reply) -> None:
        if not reply.outcome:
            self._cancel(reply)
            reply.end(GONE)

    async def _send(self, ask: Ask, reply: Reply, send: Send) -> None:
        clock, arrived_s = self.clock, self.clock.now()
        while not reply.tokens and not reply.outcome:
            await reply.changed()
        if not reply.tokens:
            if reply.outcome != GONE:
                await self.refuse(refusal(reply.outcome), send)
            return
        first_s = clock.now()
        self.latencies.ttft_s.observe(first_s - arrived_s)
        form = Format(chat=ask.chat, model=ask.model, reply=reply, created_s=int(self._epoch_s()))
        headers: list[tuple[bytes, bytes]] = [(b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
        if ask.stream:
            await self._stream(ask, reply, form, headers, send)
        else:
            await self._in_one_reply(reply, form, send)
        if reply.outcome == RETIRED:
            self.latencies.turn_s.observe(clock.now() - arrived_s)

    async def _stream(
        self, ask: Ask, reply: Reply, form: Format, headers: list[tuple[bytes, bytes]], send: Send
    ) -> None:
        clock = self.clock
        headers.append((b"content-type", b"text/event-stream; charset=utf-8"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        sent, last_s, role = 0, clock.now(), form.role()
        while True:
            tokens = reply.tokens
            if tokens > sent:
                now_s = clock.now()
                if sent:
                    self.latencies.token_s.observe((now_s - last_s) / (tokens - sent), tokens - sent)
                self.generated_tokens += tokens - sent
                await send(part(role + form.tokens(sent, tokens)))
                sent, last_s, role = tokens, now_s, b""
                continue
            if reply.outcome:
                break
            await reply.changed()
        if reply.outcome == RETIRED:
            usage = form.usage_chunk() if ask.include_usage else b""
            await send(part(usage + DONE, more=False))
        elif reply.outcome != GONE:
            await send(part(error_event(reply.outcome, f"the turn ended: {reply.outcome}"), more=False))

    async def _in_one_reply(self, reply: Reply, form: Format, send: Send) -> None:
        while not reply.outcome:
            await reply.changed()
        if reply.outcome == RETIRED:
            self.generated_tokens += reply.output_tokens
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send(part(form.in_one_reply(), more=False))
        elif reply.outcome != GONE:
            await self.refuse(refusal(reply.outcome), send)


def refusal(outcome: str) -> RefusedAsk:
    """Return the error response to a turn that ended without a byte of its answer."""
    return RefusedAsk(*REFUSALS.get(outcome, (500, outcome, f"the turn ended: {outcome}")))


def part(content: bytes, *, more: bool = True) -> dict[str, Any]:  # Any: as ASGI has it
    """Return the message that sends some bytes of a body."""
    return {"type": "http.response.body", "body": content, "more_body": more}
