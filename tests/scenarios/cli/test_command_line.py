"""The command line from outside: what it prints, what it refuses in one line, what it leaves on disk."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest

from scenarios import cli
from scenarios.catalogue.verdict import Word
from tests.paths import ROOT

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
    """Run commands in a folder of their own, in this process."""

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


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


# ------------------------------------------------ run
def test_the_json_of_a_run_has_the_stated_shape(shell: Shell) -> None:
    found = shell.json("run", "s.toml", "--candidate", "idle")
    keys = {
        *("candidate", "verdict", "headline", "flow", "latency", "goodput", "gpu_hours", "by_class", "counts", "trace"),
        *("window_s", "cpu_s_by_part", "turns_per_cpu_s", "peak_rss_mb", "ended", "scenario", "seed"),
    }
    assert keys <= set(found)
    for verdict in found["verdict"].values():
        assert {"verdict", "period_s", "amplitude_ratio", "damping_ratio", "p_value", "cost"} <= set(verdict)
        assert verdict["verdict"] in get_args(Word)
    assert "decode_occupancy_ratio" in found["verdict"]
    assert {"decode_utilization_ratio", "starved_ratio", "fed"} <= set(found["flow"])
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        assert {"p50", "p90", "p99"} == set(found["latency"][name])
    assert {"ratio", "turns_per_s"} <= set(found["goodput"])
    counts = found["counts"]
    assert {"arrived", "retired", "rejected", "failed", "preempted", "in_flight"} <= set(counts)
    assert counts["arrived"] == counts["retired"] + counts["rejected"] + counts["failed"] + counts["in_flight"]
    assert found["trace"] is None
    assert found["window_s"] == [10.0, 60.0]
    assert found["ended"] == "horizon"
    assert found["gpu_hours"] == pytest.approx(60.0 / 3600.0)
    assert found["turns_per_cpu_s"] == pytest.approx(counts["retired"] / found["cpu_s_by_part"]["span"])
    assert found["by_class"]["chat"]["counts"] == counts
    assert list(shell.folder.iterdir()) == [shell.folder / "s.toml"], "--json writes nothing"


def test_without_a_candidate_the_first_one_runs_and_it_says_so(shell: Shell) -> None:
    code, out, err = shell("run", "s.toml")
    assert code == 0
    assert "candidate gate, the first; others: idle" in err
    assert "runs/s-gate" in out
    assert sorted(path.name for path in (shell.folder / "runs" / "s-gate").iterdir()) == [
        *("curves.parquet", "events.jsonl.zst", "manifest.json", "scenario.toml"),
        *("signals.parquet", "turns.parquet", "verdict.json"),
    ]
    code, out, _ = shell("run", "s.toml", "--candidate", "gate")
    assert "runs/s-gate-2" in out


def test_a_stored_scenario_runs_again_to_the_same_end(shell: Shell) -> None:
    first = shell.json("run", "s.toml", "--out", "a", "--set", "plant.slots=9", "--seed", "7")
    again = shell.json("run", "a/scenario.toml", "--candidate", "gate", "--seed", "7")
    assert again["counts"] == first["counts"]
    assert "slots = 9" in (shell.folder / "a" / "scenario.toml").read_text(encoding="utf-8")


def test_an_override_reaches_a_candidates_law(shell: Shell) -> None:
    path = "candidates.gate.admission"
    narrow = shell.json("run", "s.toml", "--set", f"{path}.close_at_ratio=0.3", "--set", f"{path}.open_at_ratio=0.05")
    assert narrow["flow"]["backlog_turns"] > 5 * shell.json("run", "s.toml")["flow"]["backlog_turns"] + 1


def test_a_run_on_the_scaled_clock_ends_as_on_the_virtual_one(shell: Shell) -> None:
    virtual = shell.json("run", "s.toml", "--candidate", "idle")["counts"]
    real = shell.json("run", "s.toml", "--candidate", "idle", "--rate", "200")["counts"]
    assert real["arrived"] == pytest.approx(virtual["arrived"], rel=0.05)
    assert real["retired"] > 0.9 * virtual["retired"]


def test_a_run_that_retires_nothing_exits_with_one_and_says_why(shell: Shell) -> None:
    code, _, err = shell("run", "s.toml", "--json", "--set", "plant.dead_time_s=100")
    assert code == 1
    assert re.search(r"gate: no turn was retired: \d+ arrived \(\d+ in_flight\); the run ended: horizon", err)


# ------------------------------------------------ compare, list, report
def test_the_json_of_a_comparison_has_the_stated_shape(shell: Shell) -> None:
    found = shell.json("compare", "s.toml", "--seeds", "2", "--jobs", "1")
    assert found["seeds"] == [1, 2]
    assert set(found["candidates"]) == {"gate", "idle"}
    gate, idle = found["candidates"]["gate"], found["candidates"]["idle"]
    used = idle["flow"]["decode_utilization_ratio"]
    assert set(used) == {"mean", "ci95"}
    assert used["ci95"][0] <= used["mean"] <= used["ci95"][1]
    word = idle["verdict"]["decode_occupancy_ratio"]["verdict"]
    assert set(word) == {"mode", "counts"}
    assert sum(word["counts"].values()) == 2
    assert gate["difference"] == {}
    assert set(idle["difference"]["flow.decode_utilization_ratio"]) == {"mean", "ci95"}
    (check,) = found["expect"]
    assert {"key", "want", "got", "ok"} <= set(check)
    assert gate["expect"] == [{k: check[k] for k in ("key", "want", "got", "ok")}]
    assert found["ok"] is True
    assert not (shell.folder / "runs").exists()


def test_an_expectation_that_fails_is_shown_and_exits_with_one(shell: Shell) -> None:
    code, out, _ = shell("compare", "s.toml", "--jobs", "1", "--set", "expect.gate.verdict=limit_cycle")
    assert code == 1
    assert "expectations: 0 of 1 hold" in out
    assert "gate: verdict should be limit_cycle, is steady" in out
    assert (shell.folder / "runs" / "s" / "report.html").exists()


@pytest.mark.slow
def test_processes_find_what_one_process_finds(shell: Shell) -> None:
    def plain(found: Any) -> Any:
        for candidate in found["candidates"].values():
            for key in ("cpu_s_by_part", "turns_per_cpu_s", "peak_rss_mb"):
                candidate.pop(key)
        return found

    one, two = (plain(shell.json("compare", "s.toml", "--jobs", jobs)) for jobs in ("1", "2"))
    assert one == two


def test_list_names_every_shipped_scenario_with_its_question(shell: Shell) -> None:
    found = shell.json("list")
    assert {"full_empty_reference", "mild", "echo", "open_loop_null"} <= set(found)
    assert all(entry["question"].endswith("?") and entry["candidates"] for entry in found.values())
    code, out, _ = shell("list")
    assert code == 0
    assert "full_empty_reference" in out


def test_a_report_is_written_beside_the_runs_it_is_about(shell: Shell) -> None:
    shell("run", "s.toml", "--candidate", "gate", "--out", "a")
    code, out, _ = shell("report", "a")
    assert code == 0
    assert "a/report.html" in out
    assert (shell.folder / "a" / "report.html").stat().st_size > 10_000


# ------------------------------------------------ bad input: one line, the file, the place, exit 2
BAD = [
    ("slots = 20", "slotz = 20", r"plant\.slotz: unknown key \(did you mean `slots`\?\)"),
    ('"poisson"', '"poison"', r"workload\.kind: there is no kind 'poison' \(did you mean `poisson`\?\)"),
    ("retirement_gate", "retirment_gate", r"candidates\.gate\.admission\.kind: .*did you mean `retirement_gate`"),
    ("[[candidates]]", "[[candidate]]", r"candidate: unknown key \(did you mean `candidates`\?\)"),
    ("rate_per_s = 5.0", "rate_per_s = -5.0", r"workload\.rate_per_s = -5\.0: .*greater than 0"),
    ("dead_time_s = 1.0", "dead_time_s = -1.0", r"plant\.dead_time_s = -1\.0: .*greater than or equal to 0"),
    ("dead_time_s = 1.0", "dead_time_s = nan", r"plant\.dead_time_s = nan: .*finite"),
    ("horizon_s = 60.0", "horizon_s = inf", r"horizon_s = inf: .*finite"),
    ("admission_period_s = 0.5", "admission_period_s = 0.0", r"control\.admission_period_s = 0\.0: .*greater than 0"),
    ("mean_s = 2.0", "mean_s = 0", r"plant\.residence\.mean_s = 0: .*greater than 0"),
    ("slots = 20", "slots = 2.5", r"plant\.slots = 2\.5: .*valid integer"),
    ("open_at_ratio = 0.9", "open_at_ratio = 1.9", r"candidates\.gate\.admission\.open_at_ratio = 1\.9"),
    ("open_at_ratio = 0.9", "open_at_ratio = 1.0", r"candidates\.gate\.admission: open_at_ratio must be below"),
    ("warmup_s = 10.0", "warmup_s = 90.0", r"horizon_s = 60 must exceed warmup_s = 90"),
    ('name = "idle"', 'name = "gate"', r"two candidates are named gate"),
    (
        "[control]",
        "[telemetry]\nperiod_s = 1.0\nage_s = 3.0\n[control]",
        r"gate\.admission: a period of 0\.5 s is shorter",
    ),
    ("[control]", "[telemetry]\nage_s = 3.0\n[control]", r"telemetry: age_s needs period_s > 0"),
    ("expect.gate", "expect.gaet", r"expect\.gaet names no candidate \(did you mean `gate`\?\)"),
    ('"steady"', '"stedy"', r"expect\.gate\.verdict: there is no 'stedy' \(did you mean `steady`\?\)"),
    ('verdict = "steady"', '"flwo.fed" = "fed"', r"expect\.gate\.flwo\.fed: .*did you mean `flow.fed`"),
    ("seed = 1", "seed = ", r"not valid TOML: .*line 4"),
]


@pytest.mark.parametrize(("old", "new", "message"), BAD, ids=[f"{new}"[:40] for _, new, _ in BAD])
@pytest.mark.parametrize("command", ["run", "compare"])
def test_a_mistake_in_the_file_is_one_line_with_file_and_place_and_exit_two(
    shell: Shell, command: str, old: str, new: str, message: str
) -> None:
    assert old in BASE
    shell.write(BASE.replace(old, new, 1 if old != "[[candidates]]" else -1))
    code, out, err = shell(command, "s.toml")
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1, err
    assert re.match(rf"steadyflow: s\.toml: .*{message}", err), err
    assert list(shell.folder.iterdir()) == [shell.folder / "s.toml"], "something was half written"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.toml"], r"none\.toml: no such file"),
        (["run", "full_empty_referenc"], r"did you mean `full_empty_reference`"),
        (["run", "s.toml", "--candidate", "gte"], r"s\.toml: no candidate gte \(did you mean `gate`\?\)"),
        (["run", "s.toml", "--set", "plant.slots"], r"--set plant\.slots: must be PATH=VALUE"),
        (["run", "s.toml", "--set", "plan.slots=3"], r"--set plan\.slots=3: plan: no such key \(did you mean `plant`"),
        (["run", "s.toml", "--set", "plant.slotz=3"], r"plant\.slotz: unknown key \(did you mean `slots`"),
        (["run", "s.toml", "--set", "candidates.gat.admission.kind=hold"], r"candidates\.gat: .*did you mean `gate`"),
        (["run", "s.toml", "--set", "seed.x=3"], r"--set seed\.x=3: "),
        (["run", "s.toml", "--set", "plant.faults=[]"], r"plant\.faults: is no key of this part"),
        (["run", "role_flips", "--set", "reconfigure.drain=wait"], r"set candidates\.\w+\.reconfigure\.drain"),
        (["run", "s.toml", "--candidate", "gate", "--out", "there"], r"there: the folder exists"),
        (["compare", "s.toml", "--out", "there"], r"there: the folder exists"),
        (["report", "there"], r"there"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_on_the_command_line_is_one_line_and_exit_two(
    shell: Shell, arguments: list[str], message: str
) -> None:
    (shell.folder / "there").mkdir()
    code, out, err = shell(*arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1, err
    assert re.search(message, err), err
    assert sorted(path.name for path in shell.folder.rglob("*")) == ["s.toml", "there"]


def test_an_endless_line_before_an_unlimited_door_is_refused_and_leaves_nothing(shell: Shell) -> None:
    text = BASE.replace('kind = "poisson"\nrate_per_s = 5.0', 'kind = "saturated"\nwaiting_turns = 30')
    shell.write(text.replace("max_release_per_s = 50.0", ""))
    code, _, err = shell("run", "s.toml", "--candidate", "idle", "--out", "a")
    assert code == 2
    assert "set admission.max_release_per_s" in err
    assert [path.name for path in shell.folder.iterdir()] == ["s.toml"]


def test_a_fluid_run_writes_the_same_columns_and_says_what_has_no_fluid_form(shell: Shell) -> None:
    text = BASE.replace('kind = "poisson"\nrate_per_s = 5.0', 'kind = "saturated"\nwaiting_turns = 30')
    shell.write(text.replace('"tandem"', '"fluid"'))
    found = shell.json("run", "s.toml", "--candidate", "gate")
    assert found["counts"]["retired"] > 100
    assert found["verdict"]["decode_occupancy_ratio"]["verdict"] in get_args(Word)
    shell.write(text.replace('"tandem"', '"fluid"').replace("mean_s = 2.0", 'shape = "lognormal", mean_s = 2.0'))
    code, _, err = shell("run", "s.toml", "--candidate", "gate", "--json")
    assert (code, err.count("\n")) == (2, 1)
    assert "lognormal residence has no fluid form" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "--context", "nan"), "steadyflow plan: invalid value for '--context': "),
        (("run",), "steadyflow run: missing argument 'file'; "),
        (("trace", "inspekt"), "steadyflow trace: no such command 'inspekt'"),
        (("plan", "--contxt", "1"), "steadyflow plan: no such option: --contxt"),
    ],
)
def test_a_mistake_in_an_option_is_one_line_too(shell: Shell, arguments: tuple[str, ...], said: str) -> None:
    code, out, err = shell(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(said)
    assert err.count("\n") == 1


@pytest.mark.slow
def test_an_interrupted_run_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "scenarios", "run", "full_empty_reference", "--candidate", "credit_3n", "--out"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*command, str(tmp_path / "a"), "--set", "horizon_s=9000"],
        cwd=tmp_path,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60.0
    while time.monotonic() < deadline and not any(tmp_path.iterdir()):  # the record's folder in the making
        time.sleep(0.05)
    time.sleep(0.5)  # into the run itself
    err = ""
    for _ in range(5):  # Python drops an interrupt that falls into a weak reference's callback
        process.send_signal(signal.SIGINT)
        try:
            _, err = process.communicate(timeout=10)
            break
        except subprocess.TimeoutExpired:
            continue
    assert process.returncode == 130
    assert err.endswith("interrupted; nothing was kept\n")
    assert list(tmp_path.iterdir()) == []


INTERRUPT_AT_THE_IMPORT = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        if name == "scenarios.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from scenarios.__main__ import main
main()
"""


def test_an_interrupt_amid_the_imports_is_one_line_too(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", INTERRUPT_AT_THE_IMPORT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (told.returncode, told.stdout, told.stderr) == (130, "", "steadyflow: interrupted; nothing was kept\n")
