"""Logging never touches a run's record, stays off unless asked for, and crosses into worker processes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios import commentary
from scenarios.cli.logging_options import configure
from scenarios.compare.compare import compare
from scenarios.errors import UserError
from scenarios.run.execute import run
from scenarios.run.logged import LoggingSink
from scenarios.run.sink import MemorySink
from scenarios.schema.load import load
from tests.paths import ROOT

SHORT = ("horizon_s=60", "warmup_s=10")
RECORDED = ("turns.parquet", "signals.parquet", "events.jsonl.zst")


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def json_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(commentary.LEVEL, "debug")
    monkeypatch.setenv(commentary.FORMAT, "json")


def digests(folder: Path) -> list[str]:
    return [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in RECORDED]


def test_a_record_has_the_same_bytes_with_and_without_logging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scenario = load("mild", SHORT)
    monkeypatch.delenv(commentary.LEVEL, raising=False)
    run(scenario, out=tmp_path / "silent")
    assert capsys.readouterr().err == ""
    monkeypatch.setenv(commentary.LEVEL, "debug")
    run(scenario, out=tmp_path / "logged")
    assert "run ended" in capsys.readouterr().err
    assert digests(tmp_path / "silent") == digests(tmp_path / "logged")


@pytest.mark.usefixtures("json_log")
def test_every_decision_of_a_record_is_logged_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(load("mild", SHORT))
    logged = lines(capsys.readouterr().err)
    assert logged[0]["event"] == "run started"
    assert logged[-1]["event"] == "run ended"
    kinds = {str(event["kind"]) for event in done.data.events}
    decisions = [(entry["event"], entry["at_s"]) for entry in logged if entry["event"] in kinds]
    assert decisions
    assert decisions == [(event["kind"], event["at_s"]) for event in done.data.events]


@pytest.mark.slow
@pytest.mark.usefixtures("json_log")
def test_worker_processes_log_too(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(commentary.LEVEL, "info")
    comparison = compare(load("mild", SHORT), seeds=2, jobs=2)
    ends = [
        (entry["candidate"], entry["seed"]) for entry in lines(capfd.readouterr().err) if entry["event"] == "run ended"
    ]
    assert sorted(ends) == sorted((name, seed) for name in comparison.summaries for seed in comparison.seeds)


class Counting:
    """A logger that counts its lines by level."""

    def __init__(self) -> None:
        self.levels: list[str] = []

    def __getattr__(self, level: str) -> object:
        return lambda *_, **__: self.levels.append(level)


@given(count=st.integers(1, 2000))
def test_rejections_are_logged_at_powers_of_ten_above_debug(count: int) -> None:
    kept, log = MemorySink(), Counting()
    sink = LoggingSink(kept, log)  # type: ignore[arg-type]  # a fake
    for k in range(count):
        sink.event({"at_s": float(k), "kind": "rejected", "turn_id": k, "bucket": "full"})
    assert log.levels.count("info") == len(str(count))
    assert log.levels.count("debug") == count
    assert len(kept.data("", "", "").events) == count


def test_a_fault_is_a_warning_and_a_worker_that_joins_is_not() -> None:
    log = Counting()
    sink = LoggingSink(MemorySink(), log)  # type: ignore[arg-type]  # a fake
    sink.event({"at_s": 0.0, "kind": "fact", "fact": "joined", "detail": ""})
    sink.event({"at_s": 9.0, "kind": "fact", "fact": "lost", "detail": "epoch 1"})
    assert log.levels == ["debug", "warning"]


@pytest.mark.parametrize(("variable", "value"), [(commentary.LEVEL, "inf"), (commentary.FORMAT, "jsn")])
def test_an_unknown_word_in_a_variable_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(commentary.LEVEL, "info")
    monkeypatch.setenv(variable, value)
    with pytest.raises(UserError, match="must be one of"):
        commentary.logger()


@pytest.mark.parametrize(
    ("options", "level"),
    [((0, None, None), None), ((1, None, None), "info"), ((2, None, None), "debug"), ((1, "error", None), "error"),
     ((0, None, "json"), "info")],
)  # fmt: skip
def test_options_set_the_level(
    monkeypatch: pytest.MonkeyPatch, options: tuple[int, str | None, str | None], level: str | None
) -> None:
    for variable in (commentary.LEVEL, commentary.FORMAT):
        monkeypatch.setenv(variable, "")
    configure(*options)
    assert (os.environ[commentary.LEVEL] or None) == level
    assert commentary.enabled() == (level is not None)


def test_a_mistyped_level_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean `warning`"):
        configure(0, "warnin", None)


def test_structlog_and_control_are_not_imported_for_help() -> None:
    code = (
        "import sys; from scenarios.cli import app\n"
        "try: app(['compare', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('structlog', 'control', 'osqp', 'matplotlib') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr.strip() == "[]"
    assert "--log-level" in done.stdout
