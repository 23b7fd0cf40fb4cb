"""What a run logs: its start and end, its decisions, and the signals that oscillate. The record never depends on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.recorder import Columns, Sink
from scenarios import commentary
from scenarios.catalogue.verdict import LOOP_CYCLES

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

# The level of each kind of decision; a kind that is not listed is for debugging only.
_LEVELS: Mapping[str, commentary.Level] = {"reconfigure": "info", "reconfigure_refused": "warning"}
_FACT_LEVELS: Mapping[str, commentary.Level] = {"joined": "debug"}  # every other fact is a fault or its end


class LoggingSink:
    """Pass a run's record on unchanged, and log its decisions.

    Rejections of one kind are logged at the first, tenth, hundredth, ... of them; each one at level `debug`.
    """

    def __init__(self, sink: Sink, log: FilteringBoundLogger) -> None:
        self._sink, self._log = sink, log
        self._rejected: Counter[object] = Counter()

    def turns(self, columns: Columns, classes: Sequence[str], outcomes: Sequence[str]) -> None:
        """Pass on a chunk of turns."""
        self._sink.turns(columns, classes, outcomes)

    def signals(self, columns: Mapping[str, Sequence[float]]) -> None:
        """Pass on the bins."""
        self._sink.signals(columns)

    def event(self, event: Mapping[str, object]) -> None:
        """Pass on one decision, and log it."""
        self._sink.event(event)
        kind = str(event["kind"])
        details = {name: value for name, value in event.items() if name != "kind"}
        level = _LEVELS.get(kind, "debug")
        if kind == "fact":
            level = _FACT_LEVELS.get(str(event["fact"]), "warning")
        elif kind == "rejected":
            self._count(event)
        getattr(self._log, level)(kind, **details)

    def _count(self, event: Mapping[str, object]) -> None:
        bucket = event["bucket"]
        self._rejected[bucket] += 1
        count = self._rejected[bucket]
        if str(count).strip("0") == "1":
            self._log.info("rejections so far", at_s=event["at_s"], bucket=bucket, count=count)


def watched(sink: Sink, **context: object) -> Sink:
    """Return a sink that also logs each decision; the sink itself while logging is off."""
    log = commentary.logger(**context)
    return sink if log is None else LoggingSink(sink, log)


def started(horizon_s: float, **context: object) -> None:
    """Log that a run begins."""
    commentary.log("info", "run started", **context, horizon_s=horizon_s)


def ended(summary: Mapping[str, Any], **context: object) -> None:
    """Log that a run has ended, and a warning for each signal that oscillates or grows without bound."""
    if (log := commentary.logger(**context)) is None:
        return
    for signal, verdict in summary["verdict"].items():
        alarming = verdict["verdict"] in LOOP_CYCLES or verdict["verdict"] == "unbounded"
        say = log.warning if alarming else log.debug
        say("verdict", signal=signal, **{key: verdict[key] for key in ("verdict", "period_s", "amplitude_ratio")})
    counts = {name: summary["counts"][name] for name in ("retired", "rejected", "failed")}
    log.info("run ended", headline=summary["headline"], reason=summary["ended"], **counts)
