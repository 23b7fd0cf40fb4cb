"""The data dictionary is made from the tables, and the tables cover what runs write."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import orjson
import pyarrow.parquet as pq
import pytest

from orchestrator.bins import number_fields
from orchestrator.catalogue import EVENTS, MESSAGE_FIELDS, TURN_COLUMNS
from orchestrator.messages import Slot
from scenarios.catalogue.signals import row_of
from scenarios.run.dictionary import SLOT_MESSAGES, document
from scenarios.run.execute import run
from scenarios.run.record import FILES, MANIFEST
from scenarios.schema.load import load
from tests.paths import ROOT


def test_the_dictionary_is_what_the_command_makes() -> None:
    written = (ROOT / "docs" / "record.md").read_text(encoding="utf-8")
    assert written == document(), "run python -m scenarios.run.dictionary"


def test_every_number_of_a_message_has_a_meaning_and_every_slot_its_messages() -> None:
    assert set(SLOT_MESSAGES) == set(get_args(Slot))
    named = {name for pair in SLOT_MESSAGES.values() for message in pair for name in number_fields(message)}
    assert named == set(MESSAGE_FIELDS)


def test_every_event_that_the_orchestrator_records_stands_in_the_catalogue() -> None:
    kinds = {
        node.args[0].value
        for path in (ROOT / "orchestrator").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "event"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    assert kinds == {event.name for event in EVENTS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "a"
    scenario = load("mild", ["horizon_s=60", "warmup_s=10"])
    run(scenario, out=out)
    return out


def test_every_file_and_column_of_a_run_is_described(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == set(FILES) - {"report.html"}
    assert pq.read_schema(folder / "turns.parquet").names == [column.name for column in TURN_COLUMNS]
    text = document()
    for name in pq.read_schema(folder / "signals.parquet").names:
        plain = name.removesuffix("_mean").removesuffix("_min").removesuffix("_max")
        assert row_of(plain) is not None or f"`{name}`" in text, name


def test_every_key_of_a_manifest_is_described(folder: Path) -> None:
    described = {key.strip("`").split(".")[0] for key, *_ in MANIFEST}
    assert set(orjson.loads((folder / "manifest.json").read_bytes())) == described
