"""What a server refuses and what it survives: overload, overflow, keys, large bodies, clients that go away."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from scenarios.errors import UserError
from scenarios.serve.options import served
from scenarios.serve.service import Service
from tests.scenarios.serve.kit import chat, client, run, scenario, serving

CLOSED = [{"name": "closed", "admission": {"kind": "credit", "cap_turns": 1}}]


async def until(true: Any) -> None:
    while not true():
        await asyncio.sleep(0.001)


def test_a_full_queue_answers_429_and_says_when_to_come_back(tmp_path: Path) -> None:
    stated = scenario(candidates=CLOSED, admission={"queue_limit_turns": 1})

    async def main() -> None:
        async with serving(tmp_path / "run", stated) as service, client(service) as http:
            asks = [http.post("/v1/chat/completions", json=chat("a", max_tokens=400)) for _ in range(6)]
            answers = await asyncio.gather(*asks)
            refused = [answer for answer in answers if answer.status_code == 429]
            assert len(refused) == 4
            assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
            assert {answer.json()["error"]["code"] for answer in refused} == {"queue_full"}
            assert 'steadyflow_rejected_turns_total{reason="queue_full"} 4.0' in (await http.get("/metrics")).text

    run(main)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "not valid JSON"),
        (b"[1]", 400, "JSON object"),
        (b'{"model": "sim-model"}', 400, "messages must be a list"),
        (b'{"model": "other", "messages": [{"role": "user", "content": "a"}]}', 404, "there is sim-model"),
        (b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": "x"}', 400, "max_tokens must be"),
        (b'{"messages": [{"role": "user", "content": "' + b"w " * 5000 + b'"}]}', 400, "maximum context"),
        (b'{"messages": [{"role": "user", "content": "' + b"w" * (1 << 20) + b'"}]}', 413, "bytes"),
    ],
)
def test_a_wrong_request_gets_its_own_error_and_the_server_goes_on(
    tmp_path: Path, body: bytes, status: int, words: str
) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run", max_body_bytes=1 << 20) as service, client(service) as http:
            answer = await http.post("/v1/chat/completions", content=body)
            assert answer.status_code == status
            assert words in answer.json()["error"]["message"]
            assert (await http.post("/v1/chat/completions", json=chat("a"))).status_code == 200

    run(main)


def test_a_client_that_goes_away_cancels_its_turn_wherever_it_is(tmp_path: Path) -> None:
    stated = scenario(candidates=[{"name": "closed", "admission": {"kind": "credit", "cap_turns": 2}}])

    async def main() -> None:
        async with serving(tmp_path / "run", stated, rate=1.0) as service, client(service) as http:
            ledger = service.orchestrator.ledger
            gone = [
                asyncio.create_task(http.post("/v1/chat/completions", json=chat("a", max_tokens=3000, stream=stream)))
                for stream in (True, False, True, False)
            ]
            await until(lambda: ledger.arrived == 4)
            for task in gone:
                task.cancel()
            await until(lambda: ledger.failed.get("client_gone") == 4)
            assert ledger.in_flight.value == 0
            ledger.check()
            assert (await http.post("/v1/chat/completions", json=chat("b"))).status_code == 200
            await until(lambda: service.open_streams() == 0)

    run(main)


def test_keys_are_asked_for_where_there_are_any(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run", api_keys=("first", "second")) as service, client(service) as http:
            ask = chat("a", max_tokens=1)
            for key, status in (("second", 200), ("third", 401)):
                headers = {"authorization": f"Bearer {key}"}
                assert (await http.post("/v1/chat/completions", json=ask, headers=headers)).status_code == status
                assert (await http.get("/v1/models", headers=headers)).status_code == status
            assert (await http.post("/v1/chat/completions", json=ask)).status_code == 401
            assert (await http.get("/health")).status_code == 200

    run(main)


def test_more_streams_than_allowed_get_429(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run", max_streams=1, rate=1.0) as service, client(service) as http:
            first = asyncio.create_task(http.post("/v1/chat/completions", json=chat("a", max_tokens=3000)))
            await until(lambda: service.open_streams() == 1)
            assert (await http.post("/v1/chat/completions", json=chat("b"))).status_code == 429
            first.cancel()

    run(main)


def test_requests_of_one_session_carry_its_number_and_their_own_names(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run") as service, client(service) as http:
            for k, headers in enumerate(({"x-session-id": "s"}, {"x-correlation-id": "t"}, {"x-session-id": "s"})):
                named = {**headers, "x-request-id": f"r{k}"}
                answer = await http.post("/v1/chat/completions", json=chat("a", max_tokens=1), headers=named)
                assert answer.status_code == 200
            await service.drain()
            await service.stop()
        from scenarios.serve.journal import close_record

        data, missing = close_record(tmp_path / "run")
        assert missing == []
        turns = data.turns.sort_values("turn_id")
        assert list(turns["ordinal"]) == [0, 0, 1]
        assert turns["session_id"].iloc[0] == turns["session_id"].iloc[2] != turns["session_id"].iloc[1]
        names = [event["request_id"] for event in data.events if event["kind"] == "request"]
        assert names == ["r0", "r1", "r2"]

    run(main)


def test_a_plant_that_has_no_tokens_is_refused_before_anything_is_bound() -> None:
    plant = {"kind": "fluid", "slots": 2, "dead_time_s": 0.1, "residence": {"mean_s": 0.3}}
    with pytest.raises(UserError, match="fluid: has no turns to serve"):
        served(scenario(plant=plant))


def test_a_taken_port_is_the_users_mistake(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run") as service:
            from scenarios.serve.options import ServeOptions

            second = Service(served(scenario()), "open", 7, ServeOptions(port=service.port), tmp_path / "other")
            with pytest.raises(UserError, match="cannot be listened on"):
                await second.start()

    run(main)


def test_two_requests_on_one_connection_are_both_served(tmp_path: Path) -> None:
    async def main() -> None:
        limits = httpx.Limits(max_connections=1)
        async with serving(tmp_path / "run") as service:
            address = f"http://127.0.0.1:{service.port}"
            async with httpx.AsyncClient(base_url=address, limits=limits, trust_env=False) as http:
                for _ in range(3):
                    answer = await http.post("/v1/chat/completions", json=chat("a", stream=True, max_tokens=3))
                    assert answer.status_code == 200

    run(main)
