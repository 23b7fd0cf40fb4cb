"""Processes for many runs end with the one who asked for them."""

from __future__ import annotations

import signal
import time

import pytest

from scenarios.run.processes import processes


class Enough(Exception):
    """What the block below ends with."""


def ask_and_give_up() -> None:
    with processes(1) as pool:
        pool.submit(time.sleep, 120.0)
        raise Enough


@pytest.mark.slow
def test_an_error_in_the_block_ends_what_the_processes_are_doing() -> None:
    began = time.monotonic()
    with pytest.raises(Enough):
        ask_and_give_up()
    assert time.monotonic() - began < 60.0


@pytest.mark.slow
def test_processes_are_born_deaf_to_interrupts_and_their_parent_is_not() -> None:
    with processes(1) as pool:
        masked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
    assert signal.SIGINT in masked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
