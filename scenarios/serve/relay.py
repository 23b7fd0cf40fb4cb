"""A real engine's answer on its way to the client: its bytes as they come, and its status."""

from __future__ import annotations

from starlette.types import Send

from scenarios.serve.answers import GONE, Answers, part, refusal
from scenarios.serve.asks import Ask
from scenarios.serve.replies import RETIRED, Reply


class RelayedAnswers(Answers):
    """Passes bytes on. An answer that the engine broke off is broken off: no client takes it for whole."""

    async def _send(self, ask: Ask, reply: Reply, send: Send) -> None:
        exchange, arrived_s = reply.exchange, self.clock.now()
        assert exchange is not None  # `RealBackend` gives every request one
        while not exchange.status and not reply.outcome:
            await exchange.changed()
        if not exchange.status:
            if reply.outcome != GONE:
                await self.refuse(refusal(reply.outcome), send)
            return
        self.latencies.ttft_s.observe(self.clock.now() - arrived_s)
        headers = [(b"content-type", exchange.content_type.encode()), (b"cache-control", b"no-cache")]
        await send({"type": "http.response.start", "status": exchange.status, "headers": headers})
        while reply.outcome != GONE:
            if content := exchange.take():
                await send(part(content))
            elif exchange.complete or reply.outcome:
                break
            else:
                await exchange.changed()
        while not reply.outcome:
            await reply.changed()
        if reply.outcome == RETIRED:
            self.latencies.turn_s.observe(self.clock.now() - arrived_s)
        if reply.outcome == RETIRED or exchange.status >= 400:
            await send(part(b"", more=False))
