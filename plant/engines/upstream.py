"""One engine over HTTP: a request passed on byte for byte, a probe, and its metrics.

Connections are not kept: engines close them after streams although they say that they keep them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import httpx
import orjson

from plant.engines.events import EventReader, Usage, usage_of
from plant.engines.exchange import Exchange

# Answers of a server that is there and cannot serve now: the turn is tried elsewhere.
UNABLE = (429, 502, 503, 504)
SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})? (\S+)", re.MULTILINE)
# What engines call the share of KV memory in use.
KV_NAMES = (
    *("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
    "llamacpp:kv_cache_usage_ratio",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSpec:
    """Where an engine is and how long it may take, in seconds of the wall.

    `model`: the name it knows the model by (None: the client's). `metrics`: where its metrics are (None: nowhere).
    """

    url: str
    model: str | None = None
    metrics: str | None = None
    connect_s: float = 5.0
    silence_s: float = 600.0
    probe_s: float = 2.0


class Outcome(NamedTuple):
    """How an answer ended: with an error of the engine's own, or whole with its usage; None: cut short."""

    refused: bool
    usage: Usage | None


class Upstream:
    """One engine.

    Attributes
    ----------
    metrics : dict
        Its last metrics, by name, summed over labels.
    metrics_at_s : float or None
        When they were read.
    """

    def __init__(self, spec: UpstreamSpec) -> None:
        self.spec = spec
        timeout = httpx.Timeout(spec.silence_s, connect=spec.connect_s, pool=None)
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._client = httpx.AsyncClient(timeout=timeout, limits=limits, trust_env=False)
        self.metrics: dict[str, float] = {}
        self.metrics_at_s: float | None = None

    async def close(self) -> None:
        """Close every connection."""
        await self._client.aclose()

    async def pass_on(self, exchange: Exchange, first_content: Callable[[], None]) -> Outcome:
        """Send a request and pass its answer on; `first_content` is called at the first byte of content.

        Raises
        ------
        OSError
            The engine cannot be reached, is unable to serve now, or broke the answer off.
        """
        headers = {"content-type": "application/json", "accept-encoding": "identity"}
        body = exchange.request(self.spec.model)
        url = self.spec.url + exchange.path
        try:
            async with self._client.stream("POST", url, content=body, headers=headers) as answer:
                status = answer.status_code
                if status in UNABLE:
                    raise ConnectionError(f"{self.spec.url} answers {status}")
                kind = answer.headers.get("content-type", "application/json")
                if status >= 400 or not kind.startswith("text/event-stream"):
                    return await self._completed(exchange, answer, kind)
                return await self._stream(exchange, answer, kind, first_content)
        except httpx.HTTPError as error:
            raise ConnectionError(f"{self.spec.url}: {type(error).__name__}: {error}") from error

    async def _completed(self, exchange: Exchange, answer: httpx.Response, kind: str) -> Outcome:
        content = await answer.aread()
        exchange.begin(answer.status_code, kind)
        await exchange.feed(content)
        exchange.finish()
        if answer.status_code >= 400:
            return Outcome(True, None)
        try:
            return Outcome(False, usage_of(orjson.loads(content)))
        except orjson.JSONDecodeError:
            return Outcome(False, None)

    async def _stream(
        self, exchange: Exchange, answer: httpx.Response, kind: str, first_content: Callable[[], None]
    ) -> Outcome:
        reader = EventReader(exchange.keep_usage)
        begun = False
        async for part in answer.aiter_raw():
            events = reader.feed(part)
            if not begun and reader.chunks:
                begun = True
                first_content()
            if events:
                if not exchange.status:
                    exchange.begin(answer.status_code, kind)
                await exchange.feed(events)
        if rest := reader.rest():
            await exchange.feed(rest)
        exchange.finish()
        if not reader.done:
            return Outcome(False, None)
        return Outcome(False, reader.usage or Usage(0, reader.chunks, 0))

    async def alive(self) -> bool:
        """Tell whether the engine answers its probe with 200."""
        try:
            answer = await self._client.get(f"{self.spec.url}/health", timeout=self.spec.connect_s)
        except httpx.HTTPError:
            return False
        return answer.status_code == 200

    async def scrape(self, now: Callable[[], float]) -> None:
        """Read the metrics; where that fails, the last ones stand, with their age."""
        if self.spec.metrics is None:
            return
        try:
            answer = await self._client.get(self.spec.metrics, timeout=self.spec.connect_s)
        except httpx.HTTPError:
            return
        if answer.status_code == 200:
            self.metrics = read_metrics(answer.text)
            self.metrics_at_s = now()

    def kv_used_ratio(self) -> float | None:
        """Return the share of KV memory in use, if the engine says it."""
        return next((self.metrics[name] for name in KV_NAMES if name in self.metrics), None)


def read_metrics(text: str) -> dict[str, float]:
    """Return the samples of a Prometheus page, summed over labels; what is no number is passed over."""
    values: dict[str, float] = {}
    for name, value in SAMPLE.findall(text):
        try:
            values[name] = values.get(name, 0.0) + float(value)
        except ValueError:
            continue
    return values
