"""The fixtures of the command line's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)
