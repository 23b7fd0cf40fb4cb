"""Bad input at the command line: one line with file and place, exit code 2, nothing written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.scenarios.cli.shell import BASE, Shell

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
    assert list(shell.folder.iterdir()) == [shell.folder / "s.toml"], "something was left behind"


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "--context", "nan"), "steadyflow plan: invalid value for '--context': "),
        (("run",), "steadyflow run: missing argument 'file'; "),
        (("trace", "inspekt"), "steadyflow trace: no such command 'inspekt'"),
        (("plan", "--contxt", "1"), "steadyflow plan: no such option: --contxt"),
    ],
)
def test_a_mistake_in_an_option_is_one_line_too(shell: Shell, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = shell(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    assert err.count("\n") == 1


def heed_interrupts() -> None:
    """Undo an ignored SIGINT, which a child inherits where the tests themselves run in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


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
        preexec_fn=heed_interrupts,
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
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT_AT_THE_IMPORT],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=heed_interrupts,
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        130,
        "",
        "steadyflow: interrupted; nothing was kept\n",
    )
