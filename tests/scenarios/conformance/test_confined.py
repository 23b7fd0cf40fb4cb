"""Laws that do what no law may are named, each by what it does, and harm nothing; sound ones pass."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.conformance.confined import KEEPS_OUT, SAME_ELSEWHERE, check_file
from tests.paths import ROOT

HEAD = """
from orchestrator.messages import AdmissionCommand, AdmissionReading

KEPT = []


class Law:
    runs = 0

    def __init__(self, cadence):
        self.cadence = cadence
        Law.runs += 1

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        {body}
        return AdmissionCommand(in_flight_cap_turns=int(cap))
"""

# What one call of a guarded method does, and the word by which it is named.
MISDEEDS = {
    "getattr(__import__('time'), 'monotonic')()": "reads the clock (time.monotonic)",
    "open('/dev/null').read()": "opens a file",
    "__import__('pathlib').Path('x').write_text('y')": "opens a file",
    "__import__('os').listdir('.')": "asks the operating system",
    "__import__('os').system('true')": "asks the operating system",
    "__import__('subprocess').run(['true'])": "starts a process",
    "__import__('socket').socket().connect(('127.0.0.1', 9))": "uses the network",
    "__import__('gc').get_objects()": "looks through the interpreter's memory",
    "__import__('sys')._getframe(1)": "looks at its callers",
    "__import__('time').sleep(0)": "sleeps",
    "sum(1 for _ in iter(int, 1))": "CPU-seconds for one call",
}
TRY = """
import json, sys
for name in ("os", "pathlib", "subprocess", "socket", "gc", "random", "datetime"):
    __import__(name)
from scenarios.conformance import guard
guard.LONGEST_CALL_S = 0.2
guard.watch()
said = {}
for deed in json.loads(sys.argv[1]):
    class Law:
        def act(self):
            eval(deed)
    guard.forbid(Law, ("act",))
    try:
        Law().act()
        said[deed] = "nothing"
    except guard.Forbidden as error:
        said[deed] = str(error)
print(json.dumps(said))
"""


def test_each_misdeed_is_named() -> None:
    command = [sys.executable, "-c", TRY, json.dumps(list(MISDEEDS))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    named = json.loads(done.stdout)
    assert {deed: word for deed, word in MISDEEDS.items() if word not in named[deed]} == {}, named


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "question", "complaint"),
    [
        ("cap = 40", "", ""),
        ("cap = 40 + len(next(iter({'a', 'bb', 'ccc', 'dddd', 'eeeee'})))", SAME_ELSEWHERE, "strings hash otherwise"),
        ("cap = Law.runs", SAME_ELSEWHERE, "remembers an earlier run"),
        ("cap = 1\n        try: open('/dev/null')\n        except Exception: pass", KEEPS_OUT, "opens a file"),
        ("cap = sum(1 for _ in iter(int, 1))", KEEPS_OUT, "CPU-seconds for one call"),
    ],
    ids=["sound", "hash order", "state of the class", "swallows the refusal", "hangs"],
)
def test_a_law_of_a_file_is_asked_in_processes_of_its_own(
    tmp_path: Path, body: str, question: str, complaint: str
) -> None:
    path = tmp_path / "law.py"
    path.write_text(HEAD.format(body=body))
    checked = check_file(f"{path}:Law", 0.5)
    assert checked.slot == "admission"
    assert checked.ok == (not question)
    if question:
        (what,) = [finding.what for finding in checked.findings if finding.question == question]
        assert complaint in what
