"""The reference of the scenario file is complete and up to date, and mistakes name what would be right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from scenarios.cli import app
from scenarios.errors import UserError
from scenarios.schema.laws.registry import LAWS
from scenarios.schema.load import load
from scenarios.schema.mistakes import models
from scenarios.schema.reference import reference
from scenarios.schema.scenario import Scenario


@pytest.fixture(scope="module")
def text() -> str:
    return reference()


def test_the_command_prints_the_reference_and_no_table_lacks_its_keys(text: str) -> None:
    assert CliRunner().invoke(app, ["schema"]).output == text
    for model in models(Scenario, set()):
        assert [key for key in model.model_fields if key != "kind" and f"| `{key}` |" not in text] == []


def test_every_law_and_its_keys_stand_in_the_reference(text: str) -> None:
    for slot, laws in LAWS.items():
        assert [kind for kind in laws if f'`candidates.{slot}`, kind = "{kind}"' not in text] == []
    hpa = text.split('kind = "hpa"')[1].split("\n## ")[0]
    assert "| `target` | number > 0 |  | stated | Load wanted per worker, > 0 |" in hpa


def test_the_schema_for_editors_names_every_key_at_the_top() -> None:
    printed = json.loads(CliRunner().invoke(app, ["schema", "--json"]).output)
    assert {"workload", "plant", "candidates", "seed"} <= set(printed["properties"])


def test_all_missing_keys_are_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('title = "x"\nquestion = "?"\n', encoding="utf-8")
    with pytest.raises(UserError, match=r"x\.toml: these keys are missing: seed, horizon_s, warmup_s, workload, plant"):
        load(path)


def test_a_hint_names_a_key_of_the_same_table_only() -> None:
    gate = '{kind="saturation_gate", limit_ratio=0.9, stale_s=4.0, stale_after_s=4.0, when_stale="open"}'
    with pytest.raises(UserError, match=r"stale_s: unknown key \(did you mean `stale_after_s`\?\)"):
        load("mild", [f"candidates.0.admission={gate}"])
    with pytest.raises(UserError, match=r"zebra: unknown key; there are .*limit_ratio"):
        load("mild", [f"candidates.0.admission={gate.replace('stale_s=4.0', 'zebra=1')}"])
