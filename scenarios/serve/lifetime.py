"""From the start of a server to its record: signals, the time it is given, and the end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from scenarios.run.record import RunData
from scenarios.schema.scenario import Scenario
from scenarios.serve.journal import close_record
from scenarios.serve.options import ServeOptions, served
from scenarios.serve.service import Service

SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve_until_stopped(
    scenario: Scenario,
    candidate: str,
    seed: int,
    options: ServeOptions,
    run: Path,
    *,
    for_s: float | None = None,
    started: Callable[[Service], None],
) -> RunData:
    """Serve until a signal comes, or for `for_s` seconds of the wall; then make the record and return it.

    The first SIGTERM or SIGINT drains, a second one stops at once.
    """

    async def main() -> None:
        service = Service(served(scenario), candidate, seed, options, run)
        await service.start()
        loop = asyncio.get_running_loop()
        drains: list[asyncio.Task[None]] = []

        def stop_asked() -> None:
            if drains:
                service.halt()
            else:
                drains.append(loop.create_task(service.drain()))

        for number in SIGNALS:
            loop.add_signal_handler(number, stop_asked)
        if for_s is not None:
            loop.call_later(for_s, stop_asked)
        try:
            started(service)
            await service.ended()
        finally:
            for task in drains:
                task.cancel()
            await service.stop()

    asyncio.run(main())
    return close_record(run)[0]
