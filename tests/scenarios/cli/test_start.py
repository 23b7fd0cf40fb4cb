"""A command starts at once: what it has no use for is not imported, and its line of help needs no import of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from scenarios.cli.commands import COMMANDS, imported

ROOT = Path(__file__).parents[3]
PLOTS = ("plotly", "matplotlib", "IPython")
HEAVY = ("pandas", "scipy", "pyarrow", "control", "osqp", "structlog", "hypothesis", *PLOTS)
SCHEMA = ("numpy", "scenarios.schema.scenario")  # pydantic itself: Typer checks options with it
LISTED = """
import json, sys
from scenarios.__main__ import main
try:
    main()
except SystemExit as left:
    code = left.code
json.dump({"code": code, "modules": sorted(sys.modules)}, sys.__stderr__)
"""


def after(*arguments: str) -> tuple[int, set[str]]:
    """Return the exit code of a command line and the modules that it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", LISTED, *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    modules = json.loads(done.stderr.splitlines()[-1])
    return int(modules["code"] or 0), set(modules["modules"])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["list"], 0),
        (["rum"], 2),
        (["run", "--sed", "3"], 2),
        (["run", "full_emty_reference"], 2),
        (["compare", "full_emty_reference"], 2),
        (["run", "--help"], 0),
        (["compare", "--help"], 0),
        (["report", "--help"], 0),
    ],
)
def test_help_version_list_and_mistyped_names_import_no_schema_and_no_tables(arguments: list[str], code: int) -> None:
    left, modules = after(*arguments)
    assert left == code
    assert [name for name in (*HEAVY, *SCHEMA) if name in modules] == []


def test_a_mistaken_candidate_imports_no_tables_and_no_plots() -> None:
    code, modules = after("run", "mild", "--candidate", "pased_wip")
    assert code == 2
    assert [name for name in ("pandas", "pyarrow", "scipy.stats", "scipy.signal", *PLOTS) if name in modules] == []


def test_a_run_of_a_tandem_plant_imports_no_statistics_and_no_plots() -> None:
    code, modules = after("run", "mild", "--set", "horizon_s=30", "--set", "warmup_s=5", "--json")
    assert code == 0
    slow = ("scipy.stats", "scipy.signal", "scipy.optimize", "scipy.interpolate", "control", "osqp", *PLOTS)
    assert [name for name in slow if name in modules] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_of_help_is_the_first_of_the_commands_own(name: str) -> None:
    first = str(imported(name).help).split("\n\n")[0]
    assert COMMANDS[name].help == " ".join(first.split())
