"""The control notebooks run from top to bottom and are stored without outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.paths import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("0*.ipynb"))


def test_there_is_a_notebook_for_each_lesson() -> None:
    assert [path.stem.split("_", 1)[0] for path in NOTEBOOKS] == ["01", "02", "03", "04", "05"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_lesson_is_stored_without_outputs(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in book.cells)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the kernel client warns about its own event loop
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_lesson_runs(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=180, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
