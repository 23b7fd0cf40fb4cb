"""The notebook on aggregation runs from top to bottom, and its titles are true of what it measured."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.paths import ROOT

NOTEBOOK = ROOT / "notebooks" / "aggregated_or_disaggregated.ipynb"
CHECKS = """
idle = {name: seconds_spent(summary)["neither"] for name, summary in runs.items()}
assert idle["aggregated"] < idle["disaggregated"]
bandwidth = [summary["stranded"]["bandwidth_ratio"] for summary in divided.values()]
assert bandwidth == sorted(bandwidth)
assert divided[4]["stranded"]["decode_ratio"] > 5 * divided[8]["stranded"]["decode_ratio"]
for mix in MIXES:
    one, two = mixes[f"{mix}, aggregated"], mixes[f"{mix}, disaggregated"]
    assert seconds_spent(one)["neither"] < seconds_spent(two)["neither"]
"""


def test_the_notebook_is_stored_without_outputs() -> None:
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the kernel client warns about its own event loop
def test_the_notebook_runs_and_its_titles_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parent.parent))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(CHECKS))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
