"""Processes for many runs, that end with the one who asked for them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess


class _Deaf(SpawnProcess):
    """A process that never hears Ctrl-C, from its first instant on: its parent does, and ends it."""

    def start(self) -> None:
        # The tracker unblocks the signal when it starts, so it must be there before.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()  # a child is born with its parent's mask
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _DeafContext(SpawnContext):
    Process = _Deaf


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes; an error or an interrupt in the block ends them at once, whatever they were doing.

    Spawned, not forked: the parent may hold threads of pyarrow's, which do not survive a fork.
    """
    pool = ProcessPoolExecutor(max_workers=count, mp_context=_DeafContext())
    try:
        yield pool
    except BaseException:
        # The executor has no call for this before Python 3.14; waiting for a run of minutes is no way to stop.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()
