"""The table of the verdict's calibration: `python -m scenarios.calibrate` writes it, and the tests compare with it.

A thousand and more null series, most of them from runs of the simulated plants, must give at most 4 false alarms in a
thousand; every known cycle must be found, with its period within 1 %; and the power curve says how small and how short
a cycle is still found in noise.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from scipy.stats import beta

from scenarios.calibrate import plants, series
from scenarios.verdict.thresholds import THRESHOLDS

COMMAND = "python -m scenarios.calibrate"


def bound(alarms: int, trials: int) -> float:
    """Return the upper 95 % confidence bound on a rate (Clopper and Pearson, Biometrika 26, 1934)."""
    return float(beta.ppf(0.95, alarms + 1, trials - alarms))


def table() -> dict[str, Any]:
    """Run the whole calibration and return its table, digest included."""
    from_runs = {name: _reported(name, plants.null_row(name)) for name in plants.NULLS}
    from_formulas = {name: _reported(name, series.null_row(family)) for name, family in series.nulls(series.ROWS)}
    cycle_rows = plants.cycle_rows()
    cycle_rows |= {name: series.cycle_row(word, period, family) for name, word, period, family in series.cycles(20)}
    body: dict[str, Any] = {
        "thresholds": asdict(THRESHOLDS),
        "nulls_run": from_runs,
        "nulls_made": from_formulas,
        "nulls_total": totals(from_runs, from_formulas),
        "cycles": cycle_rows,
        "power": series.power(60),
    }
    text = json.dumps(body, sort_keys=True)
    return {"command": COMMAND, "seed": series.SEED, "digest": hashlib.sha256(text.encode()).hexdigest(), **body}


def totals(from_runs: dict[str, Any], from_formulas: dict[str, Any]) -> dict[str, float]:
    """Return the sums over all families, and the bounds: by series, and by run, whose signals are not independent."""
    rows = [*from_runs.values(), *from_formulas.values()]
    count = {key: int(sum(row[key] for row in rows)) for key in ("series", "false_alarms", "undecided")}
    runs, alarmed = (int(sum(row[key] for row in from_runs.values())) for key in ("runs", "runs_with_an_alarm"))
    series_from_runs = int(sum(row["series"] for row in from_runs.values()))
    return {
        **count,
        "series_from_runs": series_from_runs,
        "runs": runs,
        "runs_with_an_alarm": alarmed,
        "bound_95_ratio": series.short(bound(count["false_alarms"], count["series"])),
        "bound_95_of_runs_ratio": series.short(bound(alarmed, runs)),
    }


def _reported(name: str, row: dict[str, Any]) -> dict[str, Any]:
    sys.stderr.write(f"{name}: {row['false_alarms']} false alarms in {row['series']} series\n")
    return row


def main(path: Path) -> int:
    """Write the table; return 1 when a figure is worse than the table allows."""
    calibration = table()
    path.write_text(json.dumps(calibration, indent=1) + "\n", encoding="utf-8")
    total, rows = calibration["nulls_total"], calibration["cycles"]
    missed = [name for name, row in rows.items() if row["found"] < row["series"]]
    off = [name for name, row in rows.items() if row["worst_period_error_ratio"] > 0.01]
    sys.stdout.write(f"{total['false_alarms']} false alarms in {total['series']} nulls; missed {missed}; off {off}\n")
    return int(1000 * total["false_alarms"] > 4 * total["series"] or bool(missed) or bool(off))
