"""Processes for many runs end with the one who asked for them."""

from __future__ import annotations

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
