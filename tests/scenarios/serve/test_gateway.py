"""Engines behind the orchestrator: a modelled server stands for a good one, a few lines of asyncio for bad ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from scenarios.errors import UserError
from scenarios.run.execute import run as simulate
from scenarios.schema.scenario import Scenario
from scenarios.serve.journal import close_record
from tests.scenarios.serve.kit import chat, client, run, scenario, serving

Bad = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def gateway(*urls: str, law: dict[str, Any] | None = None, slots: int = 4, **plant: Any) -> Scenario:
    engines = [{"url": url, "slots": slots} for url in urls]
    return scenario(
        plant={"kind": "engines", "engines": engines, "probe_s": 0.05, **plant},
        candidates=[{"name": "law", "admission": law or {"kind": "hold"}}],
    )


async def until(true: Callable[[], Any]) -> None:
    while not true():
        await asyncio.sleep(0.001)


@asynccontextmanager
async def bad_engine(answers: Callable[[str], bytes | None]) -> AsyncIterator[str]:
    """Serve fixed bytes by path and close; None: never answer."""
    hanging: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readline()).decode().split()[1]
        answer = answers(path)
        if answer is None:
            hanging.append(writer)
            return
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for writer in hanging:
            writer.close()


def http_bytes(status: int, kind: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode() + body


OK = http_bytes(200, "application/json", b"{}")


def test_an_engines_bytes_pass_through_untouched_and_its_usage_is_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "engine") as engine:
            url = f"http://127.0.0.1:{engine.port}"
            async with serving(tmp_path / "run", gateway(url), rate=1.0) as service, client(service) as http:
                fields = {"max_tokens": 6, "stream": True, "stream_options": {"include_usage": True}}
                through = await http.post("/v1/chat/completions", json=chat("a b c", **fields))
                async with client(engine) as direct:
                    straight = await direct.post("/v1/chat/completions", json=chat("a b c", **fields))
                assert through.headers["content-type"] == straight.headers["content-type"]
                same = [line for line in straight.text.splitlines() if "content" in line]
                assert len(same) == len([line for line in through.text.splitlines() if "content" in line]) == 7
                assert '"usage"' in through.text
                quiet = await http.post("/v1/chat/completions", json=chat("a b c", max_tokens=6, stream=True))
                assert '"usage"' not in quiet.text
                assert quiet.text.endswith("data: [DONE]\n\n")
                reply = await http.post("/v1/completions", json={"prompt": "a b", "max_tokens": 4})
                assert reply.json()["usage"]["completion_tokens"] == 4
                wrong = await http.post("/v1/chat/completions", json=chat("w " * 5000))
                assert wrong.status_code == 400
                assert "maximum context" in wrong.json()["error"]["message"]
                page = (await http.get("/metrics")).text
                assert 'vllm:generation_tokens_total{model_name="sim-model"} 16.0' in page
                assert f'steadyflow_engine_up{{url="{url}"}} 1.0' in page
                service.orchestrator.ledger.check()

    run(main)
    data, _ = close_record(tmp_path / "run")
    assert sorted(data.turns["outcome"]) == ["failed:engine_refused", "retired", "retired", "retired"]
    retired = data.turns[data.turns["outcome"] == "retired"]
    assert sorted(retired["output_tokens"]) == [4, 6, 6]
    assert (retired["filled_s"] <= retired["ended_s"]).all()


def test_the_openai_client_reads_through_the_gateway(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "engine") as engine:
            started = gateway(f"http://127.0.0.1:{engine.port}")
            async with serving(tmp_path / "run", started, rate=1.0) as service:
                address = f"http://127.0.0.1:{service.port}/v1"
                async with openai.AsyncOpenAI(base_url=address, api_key="x", max_retries=0) as ask:
                    stream = await ask.chat.completions.create(
                        model="sim-model", messages=[{"role": "user", "content": "a"}], max_tokens=9, stream=True
                    )
                    text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
                assert len(text.split()) == 9

    run(main)


def test_the_law_at_the_gateway_bounds_what_the_engine_has_to_do(tmp_path: Path) -> None:
    law = {"kind": "credit", "cap_turns": 2}

    async def main() -> None:
        async with serving(tmp_path / "engine") as engine:
            started = gateway(f"http://127.0.0.1:{engine.port}", law=law)
            async with serving(tmp_path / "run", started, rate=1.0) as service, client(service) as http:
                most = 0
                asks = [
                    asyncio.create_task(http.post("/v1/chat/completions", json=chat("a", max_tokens=20)))
                    for _ in range(12)
                ]
                while not all(task.done() for task in asks):
                    most = max(most, int(engine.orchestrator.ledger.in_flight.value))
                    await asyncio.sleep(0.001)
                assert [task.result().status_code for task in asks] == [200] * 12
                assert 1 <= most <= 2

    run(main)


def test_an_engine_that_is_not_there_is_passed_by_and_taken_back_when_it_comes(tmp_path: Path) -> None:
    async def main() -> None:
        alive = False

        def answers(path: str) -> bytes | None:
            return OK if path == "/health" and alive else http_bytes(503, "text/plain", b"no")

        async with bad_engine(answers) as bad, serving(tmp_path / "engine") as engine:
            started = gateway(bad, f"http://127.0.0.1:{engine.port}")
            async with serving(tmp_path / "run", started, rate=1.0) as service, client(service) as http:
                asks = [http.post("/v1/chat/completions", json=chat("a", max_tokens=3)) for _ in range(8)]
                assert [answer.status_code for answer in await asyncio.gather(*asks)] == [200] * 8
                assert service.orchestrator.slots() == 4
                alive = True
                await until(lambda: service.orchestrator.slots() == 8)

    run(main)
    data, _ = close_record(tmp_path / "run")
    facts = [event["fact"] for event in data.events if event["kind"] == "fact"]
    assert facts[:2] == ["joined", "joined"]
    assert facts[2:4] == ["lost", "joined"]


def test_no_engine_left_ends_in_502_once_the_retries_are_used_up(tmp_path: Path) -> None:
    async def main() -> None:
        def answers(path: str) -> bytes | None:
            return OK if path == "/health" else http_bytes(503, "text/plain", b"no")

        async with (
            bad_engine(answers) as bad,
            serving(tmp_path / "run", gateway(bad), rate=1.0) as service,
            client(service) as http,
        ):
            answer = await http.post("/v1/chat/completions", json=chat("a"))
            assert answer.status_code == 502
            assert service.orchestrator.ledger.failed == {"worker_lost": 1}

    run(main)


def test_a_stream_without_its_final_message_is_broken_off_and_counted(tmp_path: Path) -> None:
    text = b'data: {"choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": null}]}\n\n'

    async def main() -> None:
        def answers(path: str) -> bytes | None:
            return OK if path == "/health" else http_bytes(200, "text/event-stream", text)

        async with (
            bad_engine(answers) as bad,
            serving(tmp_path / "run", gateway(bad), rate=1.0) as service,
            client(service) as http,
        ):
            with pytest.raises(httpx.RemoteProtocolError):
                await http.post("/v1/chat/completions", json=chat("a", stream=True))
            assert service.orchestrator.ledger.failed == {"stream_broken": 1}
            service.orchestrator.ledger.check()

    run(main)


def test_a_client_that_goes_away_is_cancelled_at_the_engine_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "engine", rate=1.0) as engine:
            started = gateway(f"http://127.0.0.1:{engine.port}")
            async with serving(tmp_path / "run", started, rate=1.0) as service, client(service) as http:
                asks = [
                    asyncio.create_task(http.post("/v1/chat/completions", json=chat("a", max_tokens=3000, stream=True)))
                    for _ in range(4)
                ]
                await until(lambda: engine.orchestrator.ledger.arrived == 4)
                for task in asks:
                    task.cancel()
                await until(lambda: engine.orchestrator.ledger.failed.get("client_gone") == 4)
                assert service.orchestrator.ledger.failed == {"client_gone": 4}
                assert service.orchestrator.ledger.in_flight.value == 0

    run(main)


def test_a_hanging_engine_loses_its_turns_to_another(tmp_path: Path) -> None:
    async def main() -> None:
        async with bad_engine(lambda path: None) as bad, serving(tmp_path / "engine") as engine:
            started = gateway(bad, f"http://127.0.0.1:{engine.port}", connect_s=0.5)
            async with serving(tmp_path / "run", started, rate=1.0) as service, client(service) as http:
                asks = [http.post("/v1/chat/completions", json=chat("a", max_tokens=3)) for _ in range(6)]
                assert [answer.status_code for answer in await asyncio.gather(*asks)] == [200] * 6

    run(main)


def test_engines_are_for_the_real_clock_and_their_address_is_checked() -> None:
    with pytest.raises(UserError, match="steadyflow serve"):
        simulate(gateway("http://127.0.0.1:1"))
    with pytest.raises(UserError, match="url"):
        gateway("127.0.0.1:1")
