"""The HTTP face of a server: routes, limits and keys. What a request becomes is the `Desk`'s affair."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace
from typing import Protocol

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from scenarios.serve.answers import Answers
from scenarios.serve.asks import Ask, RefusedAsk, read_ask
from scenarios.serve.figures import TEXT
from scenarios.serve.page import shell
from scenarios.serve.replies import Reply
from scenarios.serve.wire import error_body

BODY_S = 30.0  # of the wall: a body that takes longer to come is given up
INLINE_BYTES = 32_768  # a larger body is parsed and hashed in a thread, so that other streams go on meanwhile
JSON = "application/json"


class Desk(Protocol):
    """What takes requests."""

    def read(self, ask: Ask) -> object:
        """Return the tokens and block names of a prompt; may run in a thread."""
        ...

    def submit(self, ask: Ask, read: object, headers: Mapping[str, str]) -> Reply:
        """Let the request arrive. Raises RefusedAsk."""
        ...

    def ready(self) -> bool:
        """Tell whether new requests are taken."""
        ...

    def figures(self) -> bytes:
        """Return the page of metrics."""
        ...

    def live(self) -> bytes:
        """Return the numbers of the live page, as JSON."""
        ...

    def models(self) -> list[str]:
        """Return the names that requests may ask for."""
        ...


class Limits(Protocol):
    """What a server puts up with."""

    @property
    def max_body_bytes(self) -> int: ...
    @property
    def max_streams(self) -> int: ...
    @property
    def api_keys(self) -> tuple[str, ...]: ...


def application(desk: Desk, answers: Answers, limits: Limits, threads: Executor) -> Starlette:
    """Return the ASGI application."""

    async def health(_: Request) -> Response:
        return Response(b"{}", media_type=JSON)

    async def ready(_: Request) -> Response:
        if desk.ready():
            return Response(b'{"status":"ready"}', media_type=JSON)
        return Response(b'{"status":"draining"}', 503, media_type=JSON)

    async def metrics(_: Request) -> Response:
        return Response(desk.figures(), headers={"content-type": TEXT})

    async def models(request: Request) -> Response:
        if not _known(request.headers.get("authorization", ""), limits.api_keys):
            return Response(error_body(401, "invalid_api_key", "the API key is missing or wrong"), 401, media_type=JSON)
        rows = [{"id": name, "object": "model", "created": 0, "owned_by": "steadyflow"} for name in desk.models()]
        return Response(orjson.dumps({"object": "list", "data": rows}), media_type=JSON)

    async def page(_: Request) -> Response:
        html, headers = shell()
        return Response(html, headers=headers, media_type="text/html")

    async def live(_: Request) -> Response:
        return Response(desk.live(), headers={"cache-control": "no-store"}, media_type=JSON)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/live", live),
            Route("/health", health),
            Route("/ready", ready),
            Route("/metrics", metrics),
            Route("/v1/models", models),
            Route("/v1/chat/completions", Completions(desk, answers, limits, threads, chat=True), methods=["POST"]),
            Route("/v1/completions", Completions(desk, answers, limits, threads, chat=False), methods=["POST"]),
        ]
    )


def _known(authorization: str, keys: tuple[str, ...]) -> bool:
    """Tell whether a key is one of those accepted; every key is compared in full, in constant time."""
    if not keys:
        return True
    given = authorization.removeprefix("Bearer ").encode()
    return sum(hmac.compare_digest(given, key.encode()) for key in keys) > 0


class Completions:
    """One of the two completion endpoints, as an ASGI application: it streams by itself."""

    def __init__(self, desk: Desk, answers: Answers, limits: Limits, threads: Executor, *, chat: bool) -> None:
        self._desk, self._answers, self._limits, self._threads = desk, answers, limits, threads
        self._chat = chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope)
        try:
            if not _known(request.headers.get("authorization", ""), self._limits.api_keys):
                raise RefusedAsk(401, "invalid_api_key", "the API key is missing or wrong")
            if self._answers.open_streams >= self._limits.max_streams:
                raise RefusedAsk(429, "too_many_streams", f"{self._limits.max_streams} requests are open already")
            body = await _body(request.headers, receive, self._limits.max_body_bytes)
            if body is None:  # the client has gone
                return
            ask, read = await self._understood(body)
            reply = self._desk.submit(ask, read, request.headers)
        except RefusedAsk as refused:
            await self._answers.refuse(refused, send)
            return
        await self._answers.answer(ask, reply, receive, send)

    async def _understood(self, body: bytes) -> tuple[Ask, object]:
        if len(body) <= INLINE_BYTES:
            return self._read(body)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, body)

    def _read(self, body: bytes) -> tuple[Ask, object]:
        ask = read_ask(body, chat=self._chat)
        if not ask.model:
            ask = replace(ask, model=self._desk.models()[0])
        return ask, self._desk.read(ask)


async def _body(headers: Mapping[str, str], receive: Receive, limit_bytes: int) -> bytes | None:
    """Return the body of a request; None: the client went away before it was whole."""
    too_large = RefusedAsk(413, "too_large", f"the body has more than {limit_bytes} bytes")
    stated = headers.get("content-length", "0")
    if stated.isdigit() and int(stated) > limit_bytes:
        raise too_large
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                part = message.get("body", b"")
                size += len(part)
                if size > limit_bytes:
                    raise too_large
                parts.append(part)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise RefusedAsk(408, "slow_body", f"the body did not come within {BODY_S:g} s") from None
