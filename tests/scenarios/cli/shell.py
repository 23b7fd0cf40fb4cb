"""The command line in a folder of a test, with a small scenario to run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from scenarios import cli

BASE = """
title = "t"
question = "q"
seed = 1
horizon_s = 60.0
warmup_s = 10.0
[workload]
kind = "poisson"
rate_per_s = 5.0
[plant]
kind = "tandem"
slots = 20
dead_time_s = 1.0
residence = { mean_s = 2.0 }
[admission]
max_release_per_s = 50.0
[control]
admission_period_s = 0.5
[classes.chat]
ttft_s = 1.5
[[candidates]]
name = "gate"
admission = { kind = "retirement_gate", open_at_ratio = 0.9, close_at_ratio = 1.0 }
[[candidates]]
name = "idle"
admission = { kind = "hold" }
[expect.gate]
verdict = "steady"
"""


class Shell:
    """Run commands in a folder that a test owns, in this process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys, self.folder = monkeypatch, capsys, folder
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "160")
        self.write(BASE)

    def write(self, text: str, name: str = "s.toml") -> None:
        (self.folder / name).write_text(text, encoding="utf-8")

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._patch.setattr(sys, "argv", ["steadyflow", *arguments])
        code: Any = 0
        try:
            cli.main()
        except SystemExit as left:
            code = left.code or 0
        out, err = self._capsys.readouterr()
        return int(code), out, err

    def json(self, *arguments: str) -> Any:
        code, out, err = self(*arguments, "--json")
        assert code == 0, err
        return orjson.loads(out)
