"""A pool of processes for many runs; it ends with the process that started it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess


class _InterruptBlocked(SpawnProcess):
    """A process with SIGINT blocked from its start: Ctrl-C reaches the parent, which terminates it."""

    def start(self) -> None:
        # The tracker unblocks the signal when it starts, so it must be there before.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            super().start()  # a child is born with its parent's mask
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _InterruptBlockedContext(SpawnContext):
    Process = _InterruptBlocked


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes; an error or an interrupt in the block terminates them at once.

    Spawned, not forked: the parent may hold threads of pyarrow's, which do not survive a fork.
    """
    pool = ProcessPoolExecutor(max_workers=count, mp_context=_InterruptBlockedContext())
    try:
        yield pool
    except BaseException:
        # The executor has no call for this before Python 3.14; waiting for a run of minutes is no way to stop.
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown()
