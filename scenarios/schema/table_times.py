"""`times = {kind = "table", file = "steps.csv"}`: the seconds of a worker from its owner's measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from scenarios.schema.base import ScenarioTable


class TableTimes(ScenarioTable):
    """Step and fill seconds fitted to measured rows of a CSV file.

    A decode row has `batch, kv_tokens, step_s`: sequences, positions that they hold in all, seconds of one step. A fill
    row has `new_tokens, cached_tokens, pass_s` and may have `batch, kv_tokens` for what decoded in the same pass. One
    file may hold both; `fills` names another for the fill rows. A relative path starts at the scenario's folder.
    `outside`: a look-up outside the measured region is an error, or follows the outer pieces of the fit.
    """

    kind: Literal["table"]
    file: Path
    fills: Path | None = None
    outside: Literal["error", "extrapolate"] = "error"
