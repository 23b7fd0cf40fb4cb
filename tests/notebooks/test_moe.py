"""The planner's notebooks run from top to bottom and are stored without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.paths import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("moe_*.ipynb"))


def test_there_is_a_notebook_for_each_subject() -> None:
    assert [p.stem for p in NOTEBOOKS] == ["moe_expert_sharing", "moe_frontiers", "moe_mapping", "moe_regimes"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in book.cells)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the kernel client warns about its own event loop
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYFLOW_CACHE_DIR", str(tmp_path))
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
