"""The live page: the last ten minutes of a server in at most 300 points, its verdicts and its laws' commands.

`/` is a file without data; it asks `/live` again and again. A point holds the mean, the least and the most of its bins,
so that a swing which is faster than the points still shows as a band.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from orchestrator.orchestrator import Orchestrator
from scenarios.serve.watch import WINDOW_S, RecentSignals, RunningVerdict

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
POINTS = 300
POLL_MS = 2000
# Levels of the record that have a mean, a least and a most: signal, title, unit.
LEVELS = (
    ("backlog_turns", "Backlog", "turns that wait for admission"),
    ("in_flight_turns", "In flight", "turns let in"),
    ("decode_occupancy_ratio", "Busy", "share of the decode slots"),
)
COUNTS = (("admitted_turns", "admitted"), ("retired_turns", "retired"))


@cache
def shell() -> tuple[bytes, dict[str, str]]:
    """Return the page at `/`, and headers that let it run its one script and ask its server alone."""
    html = resources.files("scenarios.pages").joinpath("templates", "live.html").read_bytes()
    script = re.search(rb"<script>(.*?)</script>", html, re.DOTALL)
    assert script is not None
    digest = b64encode(sha256(script[1]).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; connect-src 'self'"
    return html, {
        "content-security-policy": f"{policy}; frame-ancestors 'none'; base-uri 'none'",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }


class LivePage:
    """What `/live` answers.

    Parameters
    ----------
    orchestrator : Orchestrator
    recent : RecentSignals
    verdict : RunningVerdict
    facts : mapping
        What stays: `run`, `model`, `candidate`, `rate`.
    """

    def __init__(
        self, orchestrator: Orchestrator, recent: RecentSignals, verdict: RunningVerdict, facts: Mapping[str, object]
    ) -> None:
        self._orchestrator, self._recent, self._verdict, self._facts = orchestrator, recent, verdict, dict(facts)
        self._drawn: tuple[int, dict[str, Any]] = (-1, {})  # plots of a version of `recent`

    def content(self, now_s: float, ready: bool) -> bytes:
        """Return the page's numbers as JSON."""
        if self._drawn[0] != self._recent.version:
            self._drawn = (self._recent.version, plots(self._recent))
        ledger = self._orchestrator.ledger
        counts = {
            "arrived": ledger.arrived,
            "retired": ledger.retired,
            "rejected": sum(ledger.rejected.values()),
            "failed": sum(ledger.failed.values()),
        }
        verdicts = [
            {
                "signal": signal,
                "verdict": each.verdict,
                "period_s": each.period_s,
                "oscillates": each.oscillates,
                "lost_ratio": each.cost["utilization_lost_ratio"],
            }
            for signal, each in self._verdict.verdicts.items()
        ]
        state = {"now_s": now_s, "ready": ready, "poll_ms": POLL_MS, "counts": counts, "verdicts": verdicts}
        return orjson.dumps(
            {**self._facts, **state, "commands": self._commands(), **self._drawn[1]},
            option=orjson.OPT_SERIALIZE_NUMPY,
        )

    def _commands(self) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = []
        for slot, fields in self._orchestrator.loops.commands().items():
            for field, value in fields.items():
                if isinstance(value, Mapping):
                    rows += [{"slot": slot, "field": f"{field} {key}", "value": part} for key, part in value.items()]
                elif isinstance(value, bool | int | float):
                    rows.append({"slot": slot, "field": field, "value": value})
        return rows


def plots(recent: RecentSignals) -> dict[str, Any]:
    """Return the points of every plot, by the same instants; a point without a value is null (JSON's NaN)."""
    t_s = recent.column("t_s")
    firsts = np.arange(0, len(t_s), max(1, -(-len(t_s) // POINTS)))
    bin_s = float(t_s[1] - t_s[0]) if len(t_s) > 1 else 1.0
    edges_s = np.append(t_s[firsts], t_s[-1:] + bin_s)
    shown = [
        _plot(
            signal,
            title,
            unit,
            [
                {
                    "name": "",
                    "values": _points(recent.column(f"{signal}_mean"), firsts, np.add) / _bins(firsts, len(t_s)),
                    "low": _points(recent.column(f"{signal}_min"), firsts, np.fmin),
                    "high": _points(recent.column(f"{signal}_max"), firsts, np.fmax),
                }
            ],
            least_top=1.0,
        )
        for signal, title, unit in LEVELS
    ]
    rates = [
        {"name": name, "values": _points(recent.column(column), firsts, np.add) / np.diff(edges_s)}
        for column, name in COUNTS
    ]
    shown.append(_plot("admission_per_s", "Through", "turns/s", rates))
    shown.append(_plot("ttft_s", "First token", "s from arrival", _first_tokens(recent, edges_s)))
    return {"window_s": WINDOW_S, "t_s": edges_s[1:], "plots": shown}


def _plot(name: str, title: str, unit: str, lines: list[dict[str, Any]], least_top: float = 0.0) -> dict[str, Any]:
    return {"id": name, "title": title, "unit": unit, "least_top": least_top, "lines": lines}


def _bins(firsts: Positions, count: int) -> Positions:
    """Return how many bins each point holds."""
    return np.diff(np.append(firsts, count))


def _points(values: Floats, firsts: Positions, join: np.ufunc) -> Floats:
    joined: Floats = join.reduceat(values, firsts) if len(firsts) else np.zeros(0)
    return joined


def _first_tokens(recent: RecentSignals, edges_s: Floats) -> list[dict[str, Any]]:
    """Return median and 99th percentile of the first tokens between two edges, among the turns that have ended."""
    at_s, took_s = recent.first_tokens()
    order = np.argsort(at_s, kind="stable")
    parts = np.split(took_s[order], np.searchsorted(at_s[order], edges_s))[1:-1]
    two = [np.quantile(part, [0.5, 0.99]) if len(part) else (np.nan, np.nan) for part in parts]
    return [{"name": name, "values": [row[k] for row in two]} for k, name in enumerate(("p50", "p99"))]
