"""Processes for many runs, that end with the one who asked for them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes; an error or an interrupt in the block ends them at once, whatever they were doing.

    Spawned, not forked: the parent may hold threads of pyarrow's, which do not survive a fork.
    """
    pool = ProcessPoolExecutor(max_workers=count, mp_context=get_context("spawn"))
    try:
        yield pool
    except BaseException:
        # The executor has no call for this before Python 3.14; waiting for a run of minutes is no way to stop.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()
