"""Every command's help has an example, and the command line takes each of them as written."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from scenarios.cli.commands import COMMANDS, imported
from tests.paths import ROOT


def commands(group: dict[str, Any], names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.items():
        if getattr(command, "commands", None):
            yield from commands(command.commands, (*names, name))
        else:
            yield (*names, name), command


ALL = list(commands({name: imported(name) for name in COMMANDS}))


@pytest.mark.parametrize(("names", "command"), ALL, ids=[" ".join(names) for names, _ in ALL])
def test_the_example_in_the_help_is_taken_as_written(
    names: tuple[str, ...], command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"Example: (steadyflow [^\n]+)", command.help or "")
    words = shlex.split(example)[1:]
    assert words[: len(names)] == list(names)
    context = command.make_context(names[-1], words[len(names) :])
    assert context.params is not None
