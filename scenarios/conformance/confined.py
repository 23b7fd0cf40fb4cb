"""The suite on a law from a file, in processes of its own: limits, no clock, no files, and twice under other hashes.

A law's file is a stranger's code. It is imported and asked in a child process with limits on CPU and memory; a second
child, whose strings hash otherwise and which begins later, gives its answers to the same readings, and they must agree:
a law that hangs on the order of a set, on an address, on chance or on the time of day answers otherwise there.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, cast

from orchestrator.control import EMPTY
from orchestrator.messages import Commands, Readings, Slot
from orchestrator.ports import Every
from scenarios.build.laws.file import class_of, made_from_file, parsed, router_from_file, slot_of
from scenarios.conformance import guard
from scenarios.conformance.finding import Finding
from scenarios.errors import UserError

LONGEST_CPU_S, LONGEST_WAIT_S, MOST_BYTES = 300, 1800, 6 * 2**30
SAME_ELSEWHERE = "the same answers in another process, and again in the same one"
KEEPS_OUT = "no clock, files, network or interpreter while it acts"
HASH_SEEDS = ("1", "2")


@dataclass(frozen=True, slots=True)
class Checked:
    """A law's slot, and the findings in order."""

    slot: str
    findings: list[Finding]

    @property
    def ok(self) -> bool:
        """Tell whether every answer is as it must be."""
        return all(finding.ok for finding in self.findings)


def check_file(law: str, period_s: float) -> Checked:
    """Ask the law `path.py:Class(name=value)` in child processes.

    Raises
    ------
    UserError
        The file does not import, or holds no such law.
    """
    first, second = (_child(law, period_s, seed) for seed in HASH_SEEDS)
    for answer in (first, second):
        if "error" in answer:
            raise UserError(answer["error"])
    findings = [Finding(**finding) for finding in first.get("findings", [])]
    died = first.get("died") or second.get("died")
    if died:
        findings.append(Finding("ends within its limits", died))
    elif first["answers"] is not None:
        findings.append(Finding(SAME_ELSEWHERE, _difference(first, second)))
    return Checked(first.get("slot", "unknown"), findings)


def _difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    if first["again"] or second["again"]:
        return str(first["again"] or second["again"])
    if first["answers"] != second["answers"]:
        return "a process in which strings hash otherwise, begun later, gives other commands for the same readings"
    return ""


def _child(law: str, period_s: float, hash_seed: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "scenarios.conformance.confined", law, repr(period_s), hash_seed]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=LONGEST_WAIT_S)
    except subprocess.TimeoutExpired:
        return {"died": f"its process waited for something until it was ended after {LONGEST_WAIT_S} s"}
    lines = done.stdout.decode(errors="replace").splitlines()
    if done.returncode == 0 and lines:
        return dict(json.loads(lines[-1]))
    if done.returncode < 0:
        limits = f"{LONGEST_CPU_S} CPU-seconds or {MOST_BYTES / 2**30:.0f} GiB"
        return {"died": f"its process was ended (signal {-done.returncode}); the limits are {limits}"}
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return {"died": f"its process ended with {done.returncode}: {last[0] if last else 'no word'}"}


# ------------------------------------------------ inside the child
def _limit() -> None:
    try:
        import resource  # not on Windows
    except ImportError:
        return
    for limit, value in ((resource.RLIMIT_CPU, LONGEST_CPU_S), (resource.RLIMIT_AS, MOST_BYTES)):
        _, hard = resource.getrlimit(limit)
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (most, hard))


def _plain(value: Any) -> Any:
    """Return a command as JSON would hold it, whatever the order of its mappings."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(inner) for inner in value]
    return repr(value)


def _answers(make: Any, slot: Slot, shown: list[Readings]) -> str:
    from scenarios.conformance.steady_simulations import with_applied

    applied: Commands = EMPTY[slot]
    digest = hashlib.sha256()
    try:
        law = make()
        for reading in shown:
            applied = law.act(with_applied(reading, applied))
            digest.update(json.dumps(_plain(applied), sort_keys=True).encode())
    except Exception as error:  # another question says what it raises
        digest.update(type(error).__name__.encode())
    return digest.hexdigest()


def _examined(make: Any, slot: Slot) -> tuple[str, str]:
    """Return a digest of the answers to a fixed set of sequences, and what differs when they are asked again."""
    from hypothesis import given

    from scenarios.conformance.kit import OPTIONS
    from scenarios.conformance.readings import sequences

    asked: list[list[Readings]] = []

    @OPTIONS
    @given(sequences(slot))
    def collect(shown: list[Readings]) -> None:
        asked.append(shown)

    collect()
    once = [_answers(make, slot, shown) for shown in asked]
    again = [_answers(make, slot, shown) for shown in asked]
    changed = "" if once == again else "a law made anew remembers an earlier run: state of the class or of a module"
    return hashlib.sha256("".join(once).encode()).hexdigest(), changed


def _asked(text: str, period_s: float, *, whole_suite: bool) -> dict[str, Any]:
    part = parsed(text)
    law = class_of(part)
    slot = slot_of(law, part)
    from scenarios.conformance import kit, routers

    every = Every(period_s=period_s)
    if slot == "routing":
        router_from_file(part)
    else:
        made_from_file(part, every)
    guard.forbid(law, ("__init__", "act", "choose"))
    if slot == "routing":
        findings = routers.check_router(lambda: law(**part.parameters)) if whole_suite else []
        answers: str | None = None
        again = ""
    else:
        name = cast(Slot, slot)
        findings = kit.check(lambda: law(every, **part.parameters), name) if whole_suite else []
        answers, again = _examined(lambda: law(every, **part.parameters), name)
    if whole_suite:
        findings.append(Finding(KEEPS_OUT, "; ".join(guard.TRIED)))
    listed = [asdict(finding) for finding in findings]
    return {"slot": slot, "findings": listed, "answers": answers, "again": again}


def main() -> None:
    """Answer one JSON object on the last line of standard output."""
    text, period_s, hash_seed = sys.argv[1:]
    _limit()
    guard.watch()
    try:
        answer = _asked(text, float(period_s), whole_suite=hash_seed == HASH_SEEDS[0])
    except UserError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
