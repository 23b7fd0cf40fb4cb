"""The notebook on agents' traffic runs from top to bottom and is stored without outputs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from orchestrator.virtual_clock import VirtualClock, run_virtual
from tests.paths import ROOT

NOTEBOOK = ROOT / "notebooks" / "agent_traffic.ipynb"


def test_the_notebook_is_stored_without_outputs() -> None:
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)


def test_a_simulation_runs_inside_a_loop_that_runs_already_as_in_a_notebook() -> None:
    async def inner(clock: VirtualClock) -> float:
        await clock.sleep_until(7.0)
        return clock.now()

    async def outer() -> tuple[float, bool]:
        before = asyncio.get_running_loop()
        return run_virtual(inner), asyncio.get_running_loop() is before

    assert asyncio.run(outer()) == (7.0, True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the kernel client warns about its own event loop
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parent.parent))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output
    )
    assert "of the requests bring half of the new tokens" in printed
