"""`steadyflow` re-exports what `scenarios` has, and its command is not hijacked by files of the working folder."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import steadyflow
from tests.paths import ROOT


@pytest.mark.parametrize("name", steadyflow.__all__)
def test_every_public_name_is_there_and_lives_in_scenarios(name: str) -> None:
    assert getattr(steadyflow, name).__module__.startswith("scenarios.")


def test_the_names_for_type_checkers_are_those_at_run_time() -> None:
    tree = ast.parse((ROOT / "steadyflow" / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    named = {
        (alias.name, node.module) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert named == set(steadyflow._HOMES.items())
    assert sorted(steadyflow._HOMES) == sorted(steadyflow.__all__)


def test_the_package_defines_nothing_of_its_own() -> None:
    tree = ast.parse((ROOT / "steadyflow" / "__init__.py").read_text(encoding="utf-8"))
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert defined == ["__getattr__", "__dir__"]
    with pytest.raises(AttributeError):
        _ = steadyflow.no_such_name


@pytest.mark.slow
@pytest.mark.parametrize("how", ["module", "path"])
def test_a_scenarios_file_in_the_working_folder_does_not_hijack_the_command(tmp_path: Path, how: str) -> None:
    (tmp_path / "scenarios.py").write_text('raise SystemExit("hijacked")\n', encoding="utf-8")
    code = ["-m", "steadyflow"] if how == "module" else ["-c", "from steadyflow.__main__ import main; main()"]
    places = [str(tmp_path), str(ROOT)] if how == "path" else [str(ROOT)]
    done = subprocess.run(
        [sys.executable, *code, "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout[:11]) == (0, "steadyflow ")
