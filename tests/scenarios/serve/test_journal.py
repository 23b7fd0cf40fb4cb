"""The record of a server: whole after a drain and after a stop, and what a killed one leaves."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from scenarios.errors import UserError
from scenarios.run.load import load
from scenarios.serve.journal import HEAD, blocks, close_record, live_folder
from scenarios.serve.service import Service
from tests.scenarios.serve.kit import chat, client, run, scenario, serving


async def ask(service: Service, count: int, **fields: object) -> list[int]:
    async with client(service) as http:
        asks = [http.post("/v1/chat/completions", json=chat(f"a {k}", **fields)) for k in range(count)]
        return [answer.status_code for answer in await asyncio.gather(*asks)]


def test_a_drain_lets_streams_end_and_refuses_what_comes_later(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run") as service:
            under_way = asyncio.create_task(ask(service, 5, max_tokens=60, stream=True))
            while service.orchestrator.ledger.arrived < 5:
                await asyncio.sleep(0.001)
            drain = asyncio.create_task(service.drain())
            await asyncio.sleep(0)
            async with client(service) as http:
                assert (await http.get("/ready")).status_code == 503
                late = await http.post("/v1/chat/completions", json=chat("late"))
                assert late.status_code == 503
                assert int(late.headers["retry-after"]) >= 1
            assert await under_way == [200] * 5
            await drain
            assert await service.stop() == "stopped"

    run(main)
    data, missing = close_record(tmp_path / "run")
    assert missing == []
    assert not live_folder(tmp_path / "run").exists()
    counts = load(tmp_path / "run").summary["counts"]
    assert (counts["arrived"], counts["retired"], counts["rejected"]) == (6, 5, 1)
    assert data.meta["notes"]["conservation"].startswith("arrived 6 = waiting 0 + filling 0")
    ended = data.turns[data.turns["outcome"] == "retired"]
    assert (ended["filled_s"] >= ended["arrived_s"]).all()
    assert (ended["ended_s"] > ended["filled_s"]).all()


def test_a_stop_ends_streams_with_an_error_and_keeps_their_turns_in_the_record(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run", rate=1.0) as service, client(service) as http:
            body = b""
            async with http.stream(
                "POST", "/v1/chat/completions", json=chat("a", max_tokens=3000, stream=True)
            ) as answer:
                async for part in answer.aiter_bytes():
                    body += part
                    service.halt()
                    break
                stop = asyncio.create_task(service.stop())
            await stop

    run(main)
    data, _ = close_record(tmp_path / "run")
    assert len(data.turns) == 1
    assert data.turns["outcome"].iloc[0] in ("decoding", "failed:client_gone")


def test_what_was_flushed_before_a_kill_can_be_recovered(tmp_path: Path) -> None:
    path, torn = tmp_path / "run", tmp_path / "torn"

    async def main() -> None:
        async with serving(path) as service:
            assert await ask(service, 4, max_tokens=8) == [200] * 4
            while service.orchestrator.recorder.workers.value < 3 or service.now_s() < 1.0:
                await asyncio.sleep(0.001)
            service.flush()
            shutil.copytree(live_folder(path), live_folder(torn))

    run(main)
    journal = live_folder(torn) / "journal.bin"
    written = sum(1 for kind, _ in blocks(journal) if kind)
    with journal.open("ab") as file:
        file.write(HEAD.pack(b"TURN", 1000, 0) + b"torn")
    assert [kind for kind, _ in blocks(journal)][written:] == [b""]
    data, missing = close_record(torn)
    assert len(data.turns) == 4
    assert len(missing) == 2
    assert "not written whole" in missing[0]
    assert load(torn).summary["ended"] == "killed"


def test_a_run_without_a_journal_and_one_that_is_in_use_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no journal of a server"):
        close_record(tmp_path / "none")

    async def main() -> None:
        async with serving(tmp_path / "run"):
            with pytest.raises(UserError, match="steadyflow recover"):
                async with serving(tmp_path / "run", scenario()):
                    pass

    run(main)
