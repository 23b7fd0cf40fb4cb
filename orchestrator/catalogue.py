"""The catalogue of a record: one row for each signal, each turn column and each field of a law's messages.

The recorder, the fluid plant, the verdict, expectations, the report and docs/record.md read these rows; nothing else
lists them. A plant adds rows for its own parts (`plant/signals.py`). To add a signal, add a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar


class Kind(StrEnum):
    """How a signal is kept in the bins of a record.

    LEVEL: a value weighted by time, as `<name>_mean`, `<name>_min` and `<name>_max`. GAUGE: the same, of a part of the
    plant. COUNT: how often something happened in the bin. LATEST: the value at the end of the bin.
    """

    LEVEL = "level"
    GAUGE = "gauge"
    COUNT = "count"
    LATEST = "latest"


class Scale(StrEnum):
    """What a swing of a signal is measured against by the verdict.

    ONE: 1. SLOTS: N, the decode slots. SERVICE: N/T, what a full pool retires a second. MEAN: the signal's own mean.
    """

    ONE = "1"
    SLOTS = "decode slots"
    SERVICE = "full service rate"
    MEAN = "own mean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One signal.

    Parameters
    ----------
    name : str
        As the verdict and expectations call it; a part in angle brackets stands for a name of the plant.
    unit : str
    kind : Kind
    scale : Scale
    meaning : str
        One sentence for the data dictionary.
    source : str
        Where the value comes from: a stage, `in_flight` or `workers` for levels, a total of the ledger for counts, an
        attribute of the pool or of the tiers for gauges.
    column : str
        The column of a COUNT; the signal itself is its rate.
    judged : bool
        Judged in every run; any other signal is judged where an expectation names it.
    per_slot : bool
        Divided by the decode slots.
    label : str
        Short name in figures of repetition; empty: not drawn there.
    empty : str
        When the column is missing or holds no number.
    """

    name: str
    unit: str
    kind: Kind
    scale: Scale
    meaning: str
    source: str
    column: str = ""
    judged: bool = False
    per_slot: bool = False
    label: str = ""
    empty: str = "never"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the record that hold the signal."""
        if self.kind in (Kind.LEVEL, Kind.GAUGE):
            return level_columns(self.name)
        return (self.column or self.name,)


def level_columns(name: str) -> tuple[str, str, str]:
    """Return the three columns of a value that is weighted by time."""
    return f"{name}_mean", f"{name}_min", f"{name}_max"


HEADLINE = "decode_occupancy_ratio"
"""The signal that speaks for a run, and that short keys of expectations mean."""
T_S = "t_s"

_LEVEL, _COUNT = Kind.LEVEL, Kind.COUNT
_SLOTS, _SERVICE = Scale.SLOTS, Scale.SERVICE
SIGNALS = (
    Signal(name="ready_turns", unit="turns", kind=_LEVEL, scale=_SLOTS, source="ready", judged=True,
           label="ready buffer", meaning="filled turns that wait for a decode slot"),
    Signal(name="backlog_turns", unit="turns", kind=_LEVEL, scale=_SLOTS, source="waiting", judged=True,
           meaning="turns that have arrived and are not yet admitted"),
    Signal(name="in_flight_turns", unit="turns", kind=_LEVEL, scale=_SLOTS, source="in_flight", judged=True,
           label="in flight", meaning="admitted turns that have not ended: filling + ready + decoding"),
    Signal(name="filling_turns", unit="turns", kind=_LEVEL, scale=_SLOTS, source="filling",
           meaning="admitted turns whose prompt is not computed yet (a tandem plant: in the dead time)"),
    Signal(name="decoding_turns", unit="turns", kind=_LEVEL, scale=_SLOTS, source="decoding",
           meaning="turns in a decode slot"),
    Signal(name=HEADLINE, unit="ratio", kind=_LEVEL, scale=Scale.ONE, source="decoding", judged=True, per_slot=True,
           label="decode occupancy", meaning="turns in a decode slot over the decode slots",
           empty="while there is no decode slot"),
    Signal(name="workers_active", unit="workers", kind=_LEVEL, scale=Scale.MEAN, source="workers", judged=True,
           meaning="workers in service, of every configuration that serves (a fluid plant: 1)"),
    Signal(name="arrival_per_s", unit="turns/s", kind=_COUNT, scale=_SERVICE, source="arrived", column="arrived_turns",
           meaning="turns that arrived in the bin"),
    Signal(name="admission_per_s", unit="turns/s", kind=_COUNT, scale=_SERVICE, source="released",
           column="admitted_turns", judged=True, label="admission", meaning="turns that were admitted in the bin"),
    Signal(name="retirement_per_s", unit="turns/s", kind=_COUNT, scale=_SERVICE, source="retired",
           column="retired_turns", judged=True, meaning="turns whose answer was completed in the bin"),
    Signal(name="slots", unit="turns", kind=Kind.LATEST, scale=_SLOTS, source="slots",
           meaning="decode slots at the end of the bin; 0: the plant has no limit"),
)  # fmt: skip

S = TypeVar("S", bound=Signal)


def of_kind(kind: Kind, rows: Iterable[S]) -> list[S]:
    """Return the rows of one kind, in order."""
    return [row for row in rows if row.kind is kind]


def headline_first(rows: Iterable[S]) -> list[S]:
    """Return the rows with that of the headline before the others."""
    return sorted(rows, key=lambda row: row.name != HEADLINE)


# ------------------------------------------------ turns
@dataclass(frozen=True, slots=True, kw_only=True)
class TurnColumn:
    """One column of the turn table.

    `code` is the type as `struct` writes it (`q`, `Q`: 64 bits, `i`: 32, `h`: 16, `d`: double); a `word` is kept as a
    number into a list of names. `source` is the attribute of `ledger.Turn`, by default the name.
    """

    name: str
    unit: str
    code: str
    meaning: str
    source: str = ""
    word: bool = False
    empty: str = "never"


_NOT_RETIRED, _NO_WORKER = "0 where the turn did not retire", "-1 where none did"
TURN_COLUMNS = (
    TurnColumn(name="turn_id", unit="", code="q", meaning="number of the turn in this run, by arrival"),
    TurnColumn(name="key", unit="", code="Q", source="view.key",
               meaning="the turn's name in every run of the scenario: a hash of its source and its place there"),
    TurnColumn(name="session_id", unit="", code="q", source="view.session_id", meaning="the conversation"),
    TurnColumn(name="ordinal", unit="", code="i", source="view.ordinal", meaning="place in the conversation, from 0"),
    TurnColumn(name="class", unit="", code="i", word=True, source="class_index", meaning="service class"),
    TurnColumn(name="arrived_s", unit="s", code="d", source="view.arrived_s", meaning="arrival"),
    TurnColumn(name="released_s", unit="s", code="d", meaning="admission", empty="the turn was never admitted"),
    TurnColumn(name="fill_started_s", unit="s", code="d", meaning="a fill worker began on the prompt",
               empty="no fill began, or the plant has no fill workers"),
    TurnColumn(name="filled_s", unit="s", code="d", meaning="end of the first fill: the first token",
               empty="no fill ended"),
    TurnColumn(name="joined_s", unit="s", code="d", meaning="joined a decode batch for the first time",
               empty="the turn never joined one"),
    TurnColumn(name="ended_s", unit="s", code="d", meaning="retired, rejected or failed",
               empty="the end of the run came first"),
    TurnColumn(name="prompt_tokens", unit="tokens", code="q", meaning="length of the prompt, cached part included"),
    TurnColumn(name="cached_tokens", unit="tokens", code="q", meaning="part of the prompt found, not computed"),
    TurnColumn(name="output_tokens", unit="tokens", code="q", meaning="length of the answer", empty=_NOT_RETIRED),
    TurnColumn(name="fill_worker", unit="", code="i", meaning="worker that filled the turn", empty=_NO_WORKER),
    TurnColumn(name="decode_worker", unit="", code="i", meaning="worker that decoded the turn last", empty=_NO_WORKER),
    TurnColumn(name="preemptions", unit="", code="h", meaning="how often the turn lost its decode slot"),
    TurnColumn(name="outcome", unit="", code="i", word=True, source="outcome",
               meaning="`retired`, `rejected:<bucket>`, `failed:<bucket>`, or the stage at the end of the run"),
)  # fmt: skip


# ------------------------------------------------ messages of the laws
SEEN, COMMAND = "seen", "command"
"""First parts of the columns `seen.<slot>.<field>` and `command.<slot>.<field>`: the last message in the bin."""
MESSAGE_FIELDS = {
    "now_s": "instant of the tick",
    "at_s": "instant at which the sample was taken",
    "time_of_day_s": "seconds since midnight",
    "backlog_turns": "turns that wait for admission",
    "backlog_smoothed_turns": "the same, smoothed over `admission.smoothing_s`",
    "filling_turns": "turns under fill",
    "ready_turns": "filled turns that wait for a slot",
    "decoding_turns": "turns in a slot",
    "in_flight_turns": "admitted turns that have not ended",
    "slots": "decode slots",
    "busy_slots": "decode slots in use",
    "arrived_total": "turns arrived since the start",
    "released_total": "turns admitted since the start",
    "retired_total": "turns retired since the start",
    "preempted_total": "preemptions since the start",
    "prompt_tokens_total": "prompt tokens arrived since the start",
    "arrival_per_s": "arrivals since the last sample, as a rate",
    "retire_per_s": "retirements since the last sample, as a rate",
    "service_per_s": "predicted rate of a full pool",
    "wait_s": "age of the oldest waiting turn",
    "ttft_s": "mean time to first token of turns filled since the last sample",
    "tpot_s": "mean time per output token of turns retired since the last sample",
    "tpot_slo_s": "the tightest objective for the time per output token",
    "kv_used_ratio": "KV memory in use over its capacity",
    "workers": "active decode workers",
    "batch_turns": "mean batch of an active decode worker",
    "step_s": "mean decode step of the workers that step",
    "gate_open": "1: admission is open; 0: closed",
    "release_per_s": "rate of admission; inf: at once",
    "in_flight_cap_turns": "most admitted turns that have not ended",
    "batch_setpoint_turns": "batch wanted of the batching loop",
    "batch_cap_turns": "most turns in a decode batch",
    "chunk_cap_tokens": "most tokens in a fill chunk",
    "load_setpoint_turns": "load wanted of the routing",
    "in_flight_setpoint_turns": "turns in flight wanted of the admission loop",
    "forecast_per_s": "turns a second expected",
    "capacity_tokens": "most tokens that the shared tier keeps",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventKind:
    """One kind of line in the file of events, and the fields it has beside `at_s` and `kind`."""

    name: str
    meaning: str
    fields: str
    empty: str = "nothing of the kind happened"


EVENTS = (
    EventKind(name="command", fields="slot, command", meaning="a law's command changed; its fields, as applied"),
    EventKind(name="rejected", fields="turn_id, bucket", meaning="a turn was refused at its arrival"),
    EventKind(name="retry", fields="turn_id, why", meaning="a turn starts again after a fault"),
    EventKind(name="sent_on", fields="turn_id, how", meaning="a turn left a worker that is drained"),
    EventKind(name="fact", fields="fact, detail", meaning="the plant reports: a worker joined, slowed or lost; a link"),
    EventKind(name="reconfigure", fields="worker, configuration, target, state, why",
              meaning="a worker enters a state of its change of configuration"),
    EventKind(name="reconfigure_refused", fields="why, targets", meaning="a command for workers cannot be carried out"),
    EventKind(name="move", fields="turn_id, stage", meaning="a turn enters a stage",
              empty='unless `record.events = "all"`'),
)  # fmt: skip
_UNITS = {
    **{"_s": "s", "_turns": "turns", "_tokens": "tokens", "_bytes": "bytes", "_ratio": "ratio", "_deg": "degrees"},
    **{"_per_s": "turns/s", "_per_cpu_s": "turns/s", "_byte_s": "byte s", "_mb": "MB", "_hours": "h"},
    **{"_tokens_total": "tokens", "_total": "turns", "slots": "turns", "workers": "workers"},
}


def unit_of(name: str) -> str:
    """Return the unit that a field's name ends in; '' where it names none."""
    ending = max((end for end in _UNITS if name.endswith(end)), key=len, default="")
    return _UNITS.get(ending, "")


def scale_of_command(field: str) -> Scale:
    """Return what a swing of a command is measured against."""
    if field.endswith("_per_s"):
        return Scale.SERVICE
    if field.endswith(("_open", "_ratio")):
        return Scale.ONE
    return Scale.MEAN if field.endswith("_workers") else Scale.SLOTS
