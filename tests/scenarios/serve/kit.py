"""Servers on loopback for tests: small plants, scaled clocks, everything bounded by the answers that are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson

from scenarios.schema.load import validate
from scenarios.schema.scenario import Scenario
from scenarios.serve.options import ServeOptions, served
from scenarios.serve.service import Service

GIVE_UP_S = 60.0  # a loaded machine is slow, a hung server is for ever


def scenario(**changes: Any) -> Scenario:
    """Two fill workers and one decode worker of eight slots: 10 ms a step, 20 us a new prompt token."""
    times = {"kind": "linear", "base_s": 0.01, "per_sequence_s": 0.0, "per_kv_token_s": 0.0, "per_new_token_s": 2e-5}
    raw: dict[str, Any] = {
        "title": "A server for tests",
        "question": "does it serve?",
        "seed": 7,
        "horizon_s": 60.0,
        "warmup_s": 0.0,
        "workload": {"kind": "requests", "output_tokens": 5, "block_tokens": 4},
        "plant": {
            "kind": "cluster",
            "configurations": {
                "fill": {"role": "fill", "times": times},
                "decode": {"role": "decode", "slots": 8, "kv_capacity_tokens": 4000, "times": times},
            },
            "racks": [{"workers": 3, "uplink_bytes_per_s": 1e11}],
            "pools": [{"configuration": "fill", "workers": 2}, {"configuration": "decode", "workers": 1}],
        },
        "candidates": [{"name": "open", "admission": {"kind": "hold"}}],
    }
    return validate(raw | changes, "test.toml")


@asynccontextmanager
async def serving(
    path: Path, given: Scenario | None = None, *, rate: float = 20.0, **options: Any
) -> AsyncIterator[Service]:
    """Run a server around a block; its journal lies beside `path`."""
    chosen = ServeOptions(**{"port": 0, "rate": rate} | options)
    stated = scenario() if given is None else given
    service = Service(served(stated), stated.candidates[0].name, stated.seed, chosen, path)
    await service.start()
    try:
        yield service
    finally:
        await service.stop()


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a test's coroutine, and give up on one that hangs."""

    async def bounded() -> None:
        async with asyncio.timeout(GIVE_UP_S):
            await main()

    asyncio.run(bounded())


def client(service: Service) -> httpx.AsyncClient:
    """Return an HTTP client of a server."""
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{service.port}", timeout=GIVE_UP_S, trust_env=False)


def chat(text: str, **fields: Any) -> dict[str, Any]:
    """Return the body of a chat completion."""
    return {"model": "sim-model", "messages": [{"role": "user", "content": text}]} | fields


def chunks(body: bytes) -> list[Any]:
    """Return the parsed chunks of a stream; the last one must be the mark of its end."""
    lines = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line]
    assert lines[-1] == b"[DONE]"
    return [orjson.loads(line) for line in lines[:-1]]
