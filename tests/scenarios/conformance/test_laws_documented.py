"""The documentation of the laws is made from the laws, and its worked example is one that passes."""

from __future__ import annotations

from orchestrator.ports import Every
from scenarios.build.laws.file import made_from_file, parsed
from scenarios.conformance import kit, shipped
from scenarios.conformance.table import table
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
    found = kit.check(lambda: made_from_file(part, Every(period_s=0.5)), "admission")
    assert [f"{one.question}: {one.what}" for one in found if not one.ok] == []
