"""A law's table is what its constructor declares, and pydantic stays out of the laws."""

from __future__ import annotations

import inspect

import pytest

from scenarios.build import laws
from scenarios.conformance import shipped
from scenarios.schema.laws import LAW_TABLES
from scenarios.schema.laws.registry import SLOTS
from tests.paths import ROOT

EVERY = [(slot, kind) for slot in LAW_TABLES for kind in LAW_TABLES[slot]]


@pytest.mark.parametrize(("slot", "kind"), EVERY)
def test_keys_and_defaults_of_a_table_are_those_of_the_constructor(slot: str, kind: str) -> None:
    table = LAW_TABLES[slot][kind]
    keywords = {p.name: p.default for p in inspect.signature(table.source).parameters.values() if p.name != "cadence"}
    assert set(table.model_fields) - {"kind", "period_s"} == set(keywords)
    for name, default in keywords.items():
        info = table.model_fields[name]
        assert info.is_required() if default is inspect.Parameter.empty else info.default == default


@pytest.mark.parametrize("slot", SLOTS)
def test_a_law_is_made_of_the_class_that_its_line_registers(slot: str) -> None:
    for kind, part in shipped.examples(slot):
        if kind != "hold":
            assert type(laws.make_law(slot, part, 1.0)) is LAW_TABLES[slot][kind].source  # type: ignore[arg-type]


def test_no_law_imports_pydantic() -> None:
    importing = [
        path.name
        for path in (ROOT / "policies").rglob("*.py")
        if "import pydantic" in (s := path.read_text(encoding="utf-8")) or "from pydantic" in s
    ]
    assert importing == []
