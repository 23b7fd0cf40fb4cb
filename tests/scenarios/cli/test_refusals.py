"""Mistakes in options, paths and files: one line that says what would be right, and nothing half-written."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from scenarios import cli
from scenarios.schema.files import library
from scenarios.schema.load import load


class Refused:
    """Run a command that must be refused; return its one line."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> str:
        self._patch.setattr(sys, "argv", ["steadyflow", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = self._capsys.readouterr()
        assert left.value.code == 2, err
        assert not out
        assert len(err.splitlines()) == 1, err
        return err


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    (tmp_path / "x.csv").write_text("t_s,x\n" + "".join(f"{i},{i % 3}\n" for i in range(40)), encoding="utf-8")
    return Refused(monkeypatch, capsys)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "mild", "--out", "taken/y"),
        ("compare", "mild", "--out", "taken/y"),
        ("sweep", "mild", "--grid", "plant.dead_time_s=1,2", "--out", "taken/y"),
        ("suite", "mild", "--out", "taken/y.html"),
        ("judge", "x.csv", "--html", "taken/y.html"),
        ("plan", "--model", "kimi-k3", "--out", "taken/y.html"),
        ("trace", "generate", "agentx", "taken/y.parquet"),
    ],
)
def test_a_path_through_a_file_is_refused_before_anything_is_computed(
    refused: Refused, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = sorted(tmp_path.iterdir())
    assert "is a file, not a folder" in refused(*words)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "words", [("run", "mild"), ("suite", "mild"), ("sweep", "mild", "--grid", "plant.dead_time_s=1,2")]
)
def test_a_file_in_the_place_of_the_usual_folder_is_refused(
    refused: Refused, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "runs").write_text("a file", encoding="utf-8")
    extra = ("--candidate", "retirement_gate") if words[0] == "run" else ()
    assert "runs is a file, not a folder" in refused(*words, *extra)


def test_a_file_is_no_folder_for_a_sweep(refused: Refused) -> None:
    assert "taken is a file; name a folder" in refused(
        "sweep", "mild", "--grid", "plant.dead_time_s=1,2", "--out", "taken"
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that takes no files")
def test_a_place_that_takes_no_files_is_refused(refused: Refused) -> None:
    assert "/proc/x/y cannot be written" in refused("run", "mild", "--out", "/proc/x/y")
    assert "/proc/x.html cannot be written" in refused("report", "runs", "--out", "/proc/x.html")


def test_a_seed_beyond_what_a_record_holds_is_refused_up_front(refused: Refused) -> None:
    huge = "99999999999999999999999"
    assert "--seed" in refused("run", "mild", "--seed", huge)
    assert "mild.toml: seed" in refused("run", "mild", "--set", f"seed={huge}")
    assert load("mild", ["seed=9223372036854775807"]).seed == 2**63 - 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("--batch", value) for value in ("nan", "0", "inf")),
        *(("--gpu-hour-price", value) for value in ("nan", "-2")),
        ("--draft-tokens", "-1"),
        *(("--max-tp", "0"), ("--max-pp", "0")),
        *(("--max-latency-s", value) for value in ("nan", "-1")),
        *(("--accepted-tokens", value) for value in ("nan", "-1", "0")),
    ],
)
def test_numbers_that_make_no_sense_are_blamed_on_their_option(refused: Refused, option: str, value: str) -> None:
    assert f"'{option}'" in refused("plan", "--model", "kimi-k3", option, value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "mild", "--rate", "inf"), "'--rate': must be less than or equal to"),
        (("run", "mild", "--rate", "nan"), "'--rate': must be "),
        (("compare", "mild", "--seeds", "1e3"), "'--seeds': must be a valid integer; steadyflow compare --help"),
        (("trace", "lanes", "--window-s", "inf"), "'--window-s': must be less than"),
        (("trace", "lanes", "--idle-cap-s", "inf"), "'--idle-cap-s': must be less than"),
        (("trace", "inspect", "x.csv", "--horizon-s", "inf"), "'--horizon-s': must be less than"),
        (("check-policy", "x.py:X", "--period-s", "inf"), "'--period-s': must be less than"),
        (("identify", "mild", "--configuration", "fill"), "--configuration fill: names a pool to stir; it goes with"),
        (("plan", "--model", "kimi-k3", "--accepted-tokens", "3"), "at most 1 + --draft-tokens = 1"),
        (("plan", "--model", "kimi-k3", "--draft-tokens", "65"), "'--draft-tokens': must be less than"),
        (("plan", "--model", "kimi-k3", "--batch", "1e300", "--explain", "dp64"), "--batch 1e+300: at most 1e+06"),
        (("plan", "--model", "kimi-k3", "--gpu-hour-price", "1e308"), "--gpu-hour-price 1e+308: at most 1e+06"),
        (("plan", "--model", "kimi-k3", "--gpus", "16", "--max-latency-s", "1e-9"), "raise --max-latency-s"),
        (("plan", "regimes", "--batch", "99999999"), "'--batch': must be less than"),
    ],
)
def test_numbers_without_bound_or_sense_are_one_line_before_anything_is_computed(
    refused: Refused, words: tuple[str, ...], message: str
) -> None:
    assert message in refused(*words)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("horizon_s=1e300", "horizon_s"),
        ("control.admission_period_s=1e-12", "control.admission_period_s = 1e-12 makes more than 1e+09 steps"),
        ("record.signal_bin_s=1e-12", "record.signal_bin_s = 1e-12 makes more"),
    ],
)
def test_a_run_that_could_never_end_is_refused(refused: Refused, setting: str, message: str) -> None:
    assert message in refused("run", "mild", "--set", setting)


def test_a_filter_that_nothing_can_move_is_refused(refused: Refused) -> None:
    law = '{ kind = "kalman", lead_s = 10.0, level_ratio = 0, trend_ratio = 0 }'
    assert "both 0" in refused("run", "mild", "--set", f"candidates.0.demand={law}")


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("run",), ("compare",), ("report",), ("analyze",), ("identify",), ("judge",), ("sweep",), ("robust",),
    ("tune",), ("check-policy",), ("suite",), ("leaderboard",), ("list",), ("demo",), ("plan",), ("plan", "memory"),
    ("plan", "regimes"), ("plan", "models"), ("plan", "validate"), ("trace", "inspect"), ("trace", "lanes"),
    ("trace", "convert"), ("trace", "generate"),
)  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example_that_it_would_take(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    command_: Any = typer.main.get_command(cli.app)  # Typer's own copy of click publishes no types
    context = command_.make_context("steadyflow", [], resilient_parsing=True)
    for word in command:
        _, command_, _ = command_.resolve_command(context, [word])
        context = command_.make_context(word, [], parent=context, resilient_parsing=True)
    message = " ".join(f"{command_.help} {command_.epilog or ''}".split())
    example = re.search(r"Example: steadyflow (.*?)(?: None)?\Z", message)
    assert example is not None
    words = shlex.split(example[1].strip())
    assert tuple(words[: len(command)]) == command
    command_.make_context(command[-1], words[len(command) :], parent=context.parent)


def test_the_group_of_traces_shows_an_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["steadyflow", "trace", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "Example: steadyflow trace generate" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("name", "setting", "message"),
    [
        ("kv_hot_prefix", "plant.kv.hardware=gb201", "plant.kv.hardware: no gb201"),
        ("kv_hot_prefix", "plant.pools.0.workers=999", "plant: the pools hold"),
        (
            "kimi_k3_gb200",
            "plant.configurations.decode.times.hardware=gb201",
            "plant.configurations.decode.times.hardware: `gb201` is unknown",
        ),
        (
            "kimi_k3_gb200",
            "plant.configurations.decode.times.placement={tp=7}",
            "plant.configurations.decode.times.placement: tp=7",
        ),
    ],
)
def test_what_shows_only_when_a_plant_is_built_names_the_users_file_and_the_key(
    refused: Refused, tmp_path: Path, name: str, setting: str, message: str
) -> None:
    (tmp_path / "mine.toml").write_bytes(library()[name].read_bytes())
    first = load(name).candidates[0].name
    line = refused("run", "mine.toml", "--candidate", first, "--set", setting)
    assert line.startswith(f"steadyflow: mine.toml: {message}")
