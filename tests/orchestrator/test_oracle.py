"""What a turn's answer will cost is known to the plant alone: no orchestrator or policy module can reach it."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import messages, ports, turn
from tests.paths import ROOT

HIDDEN = ("truth", "draws", "service_s", "remaining_tokens", "residence")


def modules(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def test_importing_every_kernel_and_policy_module_loads_no_plant_and_no_scenario() -> None:
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in ("orchestrator", "policies")
        for path in modules(package)
    ]
    program = (
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('plant', 'scenarios')])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", [*modules("orchestrator"), *modules("policies/admission")], ids=lambda p: p.stem)
def test_no_kernel_or_admission_module_asks_for_a_hidden_attribute(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    asked = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    # `getattr` with a word of its own would pass this search, so it may only be used with names known here.
    reached = {
        node.args[1].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "getattr"
        and isinstance(node.args[1], ast.Constant)
    }
    assert not (asked | reached) & {*HIDDEN, "hidden_turns", "_hidden_turns"}
    if path.name not in ("ledger.py", "recorder.py", "journey.py", "ports.py"):  # once the answer is complete
        assert "output_tokens" not in asked | reached


def test_what_a_law_or_a_router_is_shown_has_no_length_to_come() -> None:
    shown = [turn.TurnView, ports.WorkerView, ports.WorkerInfo, ports.PlantFact, ports.Filled, ports.Staged]
    names = {name for message in shown for name in message._fields}
    for message in vars(messages).values():
        if dataclasses.is_dataclass(message):
            names |= {field.name for field in dataclasses.fields(message)}
    assert not [name for name in names if "output" in name or name in HIDDEN]


def test_a_turn_has_no_way_to_its_truth() -> None:
    view = turn.TurnView(turn.TurnId(0), 1, turn.ClassName("a"), 0, 0, 0.0, 5, turn.EMPTY_CHAIN)
    assert not hasattr(view, "output_tokens")
    assert not hasattr(view, "__dict__"), "nothing can be hung on it"
    ledger = importlib.import_module("orchestrator.ledger")
    assert ledger.Turn(view, view.turn_id, view.prompt_tokens, 0).output_tokens == 0, "known once it is retired"
