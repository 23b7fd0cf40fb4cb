"""Every registered law passes the suite, and the suite catches the laws that it is there to catch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from orchestrator.messages import AdmissionCommand, AdmissionReading, CapacityCommand, CapacityReading
from orchestrator.ports import Every
from scenarios.build import laws
from scenarios.cli import app
from scenarios.conformance import kit, routers, shipped
from scenarios.schema.laws.registry import SLOTS

EVERY = Every(period_s=0.5)
PERIODS = {"admission": 0.5, "batching": 0.5, "capacity": 30.0, "demand": 600.0, "retention": 60.0}


@pytest.mark.parametrize(("slot", "kind"), [(slot, kind) for slot in SLOTS for kind in shipped.kinds(slot)])
def test_every_registered_law_conforms(slot: Any, kind: str) -> None:
    part = dict(shipped.examples(slot))[kind]
    checks = kit.check(lambda: laws.make_law(slot, part, PERIODS[slot]), slot)
    assert [f"{check_.question}: {check_.what}" for check_ in checks if not check_.ok] == []


@pytest.mark.parametrize("kind", shipped.kinds("routing"))
def test_every_registered_router_conforms(kind: str) -> None:
    make = laws.router_maker(dict(shipped.examples("routing"))[kind])
    assert [f"{check.question}: {check.what}" for check in routers.check_router(make) if not check.ok] == []


class Windup:
    """An integrator without anti-windup."""

    def __init__(self, cadence: Every) -> None:
        self.cadence, self.total = cadence, 0.0

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        self.total += 100.0 - y.in_flight_turns
        return AdmissionCommand(release_per_s=max(0.0, 40.0 + 0.01 * self.total))


class NotFinite:
    def __init__(self, cadence: Every) -> None:
        self.cadence = cadence

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        return AdmissionCommand(release_per_s=y.busy_slots / y.slots)


class Flapping:
    def __init__(self, cadence: Every) -> None:
        self.cadence, self.up = cadence, False

    def act(self, y: CapacityReading) -> CapacityCommand:
        self.up = not self.up
        return CapacityCommand(target_workers={"decode": 1 + self.up})  # type: ignore[dict-item]


class Lying:
    monotone = (("in_flight_turns", "release_per_s", -1),)

    def __init__(self, cadence: Every) -> None:
        self.cadence = cadence

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        return AdmissionCommand(release_per_s=min(y.in_flight_turns, 1e6))


class Stranger:
    def __init__(self, cadence: Every) -> None:
        self.cadence = cadence

    def act(self, y: AdmissionReading) -> CapacityCommand:
        return CapacityCommand()


class Hoarder:
    def __init__(self, cadence: Every) -> None:
        self.cadence: Every = cadence
        self.seen: list[float] = []

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        self.seen.append(y.in_flight_turns)
        return AdmissionCommand(release_per_s=40.0)


CULPRITS = [
    (Windup, "admission", "windup"),
    (NotFinite, "admission", "ZeroDivisionError"),
    (Flapping, "capacity", "turns round"),
    (Lying, "admission", "should go down"),
    (Stranger, "admission", "is no command of"),
    (Hoarder, "admission", "memory grows"),
]


@pytest.mark.parametrize(("law", "slot", "complaint"), CULPRITS)
def test_the_suite_names_what_a_bad_law_does(law: Any, slot: Any, complaint: str) -> None:
    message = " ".join(check.what for check in kit.check(lambda: law(EVERY), slot))
    assert complaint in message


LAW = """
from orchestrator.ports import Cadence
from orchestrator.messages import AdmissionCommand, AdmissionReading


class MyGate:
    def __init__(self, cadence: Cadence, *, cap_turns: int = 500) -> None:
        self.cadence, self.cap_turns = cadence, cap_turns

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        return AdmissionCommand(in_flight_cap_turns=self.cap_turns)
"""


def test_check_policy_passes_a_sound_file_and_refuses_a_reader_of_the_clock(tmp_path: Path) -> None:
    path = tmp_path / "law.py"
    path.write_text(LAW)
    good = CliRunner().invoke(app, ["check-policy", f"{path}:MyGate(cap_turns=40)"])
    assert good.exit_code == 0, good.output
    path.write_text("import time\n" + LAW)
    bad = CliRunner().invoke(app, ["check-policy", f"{path}:MyGate"])
    assert bad.exit_code == 1
    assert "imports time" in bad.output


def test_a_law_of_a_file_runs_beside_the_shipped_ones(tmp_path: Path) -> None:
    path = tmp_path / "law.py"
    path.write_text(LAW)
    run = ["run", "mild", "--policy-file", f"{path}:MyGate", "--set", "horizon_s=120", "--json"]
    result = CliRunner().invoke(app, run)
    assert result.exit_code == 0, result.output
    assert '"candidate": "my_gate"' in result.output
