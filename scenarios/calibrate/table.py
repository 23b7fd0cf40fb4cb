"""The calibration's table: `python -m scenarios.calibrate` writes it, and the tests hold the code to it.

A thousand and more null series, most of them from runs of our own plants, must give at most 4 false alarms in a
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
    ran = {name: _told(name, plants.null_row(name)) for name in plants.NULLS}
    made = {name: _told(name, series.null_row(family)) for name, family in series.nulls(series.ROWS)}
    cycle_rows = plants.cycle_rows()
    cycle_rows |= {name: series.cycle_row(word, period, own) for name, word, period, own in series.cycles(20)}
    body: dict[str, Any] = {
        "thresholds": asdict(THRESHOLDS),
        "nulls_run": ran,
        "nulls_made": made,
        "nulls_total": totals(ran, made),
        "cycles": cycle_rows,
        "power": series.power(60),
    }
    text = json.dumps(body, sort_keys=True)
    return {"command": COMMAND, "seed": series.SEED, "digest": hashlib.sha256(text.encode()).hexdigest(), **body}


def totals(ran: dict[str, Any], made: dict[str, Any]) -> dict[str, float]:
    """Return the sums over all families, and the bounds: by series, and by run, whose signals are not independent."""
    rows = [*ran.values(), *made.values()]
    count = {key: int(sum(row[key] for row in rows)) for key in ("series", "false_alarms", "undecided")}
    runs, alarmed = (int(sum(row[key] for row in ran.values())) for key in ("runs", "runs_with_an_alarm"))
    own = int(sum(row["series"] for row in ran.values()))
    return {
        **count,
        "series_from_runs": own,
        "runs": runs,
        "runs_with_an_alarm": alarmed,
        "bound_95_ratio": series.short(bound(count["false_alarms"], count["series"])),
        "bound_95_of_runs_ratio": series.short(bound(alarmed, runs)),
    }


def _told(name: str, row: dict[str, Any]) -> dict[str, Any]:
    sys.stderr.write(f"{name}: {row['false_alarms']} false alarms in {row['series']} series\n")
    return row


def main(path: Path) -> int:
    """Write the table; return 1 when a promise is broken."""
    made = table()
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    total, rows = made["nulls_total"], made["cycles"]
    missed = [name for name, row in rows.items() if row["found"] < row["series"]]
    off = [name for name, row in rows.items() if row["worst_period_error_ratio"] > 0.01]
    sys.stdout.write(f"{total['false_alarms']} false alarms in {total['series']} nulls; missed {missed}; off {off}\n")
    return int(1000 * total["false_alarms"] > 4 * total["series"] or bool(missed) or bool(off))
