"""The documentation of the laws is made from the laws, and its worked example is one that passes."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import settings

from orchestrator.ports import Every
from scenarios.build.laws.file import made_from_file, parsed
from scenarios.conformance import kit, shipped
from scenarios.conformance.table import table
from scenarios.run.execute import run
from scenarios.schema.laws import LAW_TABLES
from tests.paths import ROOT

DOCS = ROOT / "docs"


def test_the_table_of_laws_is_what_the_command_makes() -> None:
    assert (DOCS / "laws.md").read_text(encoding="utf-8") == table(), "run python -m scenarios.conformance.table"


def test_every_law_has_a_row_and_a_source() -> None:
    lines = (DOCS / "laws.md").read_text(encoding="utf-8").splitlines()
    for slot in LAW_TABLES:
        for kind in shipped.kinds(slot):
            rows = [line for line in lines if line.startswith(f"| [`{kind}`]") and f"/{slot}/" in line]
            assert kind == "hold" or (len(rows) == 1 and rows[0].split(" | ")[-1].strip(" |")), f"{slot} {kind}"


def test_the_worked_example_of_the_guide_conforms() -> None:
    part = parsed(f"{DOCS / 'examples' / 'my_law.py'}:MyLaw")
    checks = kit.check(lambda: made_from_file(part, Every(period_s=0.5)), "admission")
    assert [f"{check.question}: {check.what}" for check in checks if not check.ok] == []


@pytest.mark.slow
def test_the_property_tests_of_the_guide_run_as_written_and_run_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(DOCS / "examples"))
    text = (DOCS / "write-a-law.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) if "LawMachine" in block]
    names: dict[str, Any] = {"__name__": "test_of_the_guide"}
    exec(compile(code, "write-a-law.md", "exec"), names)
    ran: list[str] = []
    names["run"] = lambda world: ran.append(world.candidates[0].admission.law) or run(world)
    names["test_turns_are_conserved"]()
    assert set(ran) == {"MyLaw"}
    case = names["TestMyLaw"]()
    case.settings = settings(max_examples=5, deadline=None)
    case.runTest()
