"""The data dictionary of a run's folder, made from the tables: `python -m scenarios.run.dictionary` rewrites it.

A test compares docs/record.md with what is made here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from orchestrator import messages
from orchestrator.bins import number_fields
from orchestrator.catalogue import COMMAND, EVENTS, MESSAGE_FIELDS, SEEN, T_S, TURN_COLUMNS, Kind, Signal, unit_of
from scenarios.catalogue.signals import ALL
from scenarios.run.record import CURVES, FILES, MANIFEST
from scenarios.schema.summary import NUMBER_KEYS, WORD_KEYS

HEAD = """# The files of a run

Made by `python -m scenarios.run.dictionary` from the tables that the code reads; a test compares.

Times are seconds from the start of the run. A part in angle brackets stands for a name: of a pool (a configuration),
a tier, a slot of a law, a service class, a part of a mixture. In a Parquet file a number that does not exist is null
(read by pandas: NaN); in JSON it is null.

"""
SLOT_MESSAGES = {
    "admission": (messages.AdmissionReading, messages.AdmissionCommand),
    "batching": (messages.BatchReading, messages.BatchCommand),
    "capacity": (messages.CapacityReading, messages.CapacityCommand),
    "retention": (messages.RetentionReading, messages.RetentionCommand),
    "demand": (messages.DemandReading, messages.DemandCommand),
}
KINDS = {
    Kind.LEVEL: "three columns, `_mean` (weighted by time), `_min` and `_max` in the bin",
    Kind.GAUGE: "three columns, as a level; of a part of the plant",
    Kind.COUNT: "one column, how often it happened in the bin; the signal is its rate",
    Kind.LATEST: "one column, the value at the end of the bin",
}


def document() -> str:
    """Return docs/record.md."""
    parts = [HEAD, *_table(("file", "holds"), FILES.items())]
    parts += ["\n## turns.parquet\n\nOne row for each turn that arrived.\n\n"]
    parts += _table(
        ("column", "unit", "meaning", "when empty"),
        ((f"`{column.name}`", column.unit, column.meaning, column.empty) for column in TURN_COLUMNS),
    )
    parts += ["\n## signals.parquet\n\nOne row for each bin (`record.signal_bin_s`). Kinds of signal:\n\n"]
    parts += [f"- {kind}: {meaning}\n" for kind, meaning in KINDS.items()]
    parts += ["\nThe scale is what the verdict measures a swing against. A signal that is not judged in every run is\n"
              "judged where an expectation names it (`verdict.<signal>.verdict`).\n\n"]  # fmt: skip
    parts += _table(("signal", "columns", "unit", "kind", "scale", "judged", "meaning", "when empty"), _signals())
    parts += ["\nThe last reading and the last command of each law in the bin. A column is missing where its field\n"
              "was never measured or never commanded, and null before it first was.\n\n"]  # fmt: skip
    parts += _table(("column", "unit", "meaning"), _messages())
    parts += ["\n## events.jsonl.zst\n\nOne JSON object a line, with `at_s`, `kind` and the fields of its kind.\n\n"]
    parts += _table(
        ("kind", "fields", "meaning", "when empty"),
        ((f"`{event.name}`", event.fields, event.meaning, event.empty) for event in EVENTS),
    )
    parts += [
        "\n## verdict.json\n\n`summary` holds what `run --json` prints; `verdict` the same verdicts by signal.\n\n"
    ]
    keys = sorted((*NUMBER_KEYS, *WORD_KEYS), key=lambda key: key.path.split(".")[0])
    parts += _table(
        ("key of `summary`", "unit", "meaning", "when empty"),
        ((f"`{key.path}`", _unit(key.path), key.meaning, key.empty) for key in keys),
    )
    parts += ["\n## manifest.json\n\n"]
    parts += _table(("key", "unit", "meaning", "when empty"), MANIFEST)
    parts += ["\n## curves.parquet\n\n"]
    parts += _table(("column", "unit", "meaning", "when empty"), CURVES)
    return "".join(parts)


def _signals() -> Iterator[tuple[str, ...]]:
    yield f"`{T_S}`", "one", "s", "", "", "", "start of the bin", "never"
    for row in ALL:
        judged = "always" if row.judged else "if named" if row.kind is not Kind.LATEST else "no"
        yield f"`{row.name}`", _columns(row), row.unit, row.kind, row.scale, judged, row.meaning, row.empty


def _columns(row: Signal) -> str:
    return "three" if row.kind in (Kind.LEVEL, Kind.GAUGE) else f"`{row.columns[0]}`"


def _unit(path: str) -> str:
    return next((unit for part in reversed(path.split(".")) if (unit := unit_of(part))), "")


def _messages() -> Iterator[tuple[str, ...]]:
    for slot in get_args(messages.Slot):
        for prefix, message in zip((SEEN, COMMAND), SLOT_MESSAGES[slot]):
            for name in number_fields(message):
                yield f"`{prefix}.{slot}.{name}`", unit_of(name), MESSAGE_FIELDS[name]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    titles = list(head)
    yield f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n"


if __name__ == "__main__":
    path = Path(__file__).resolve().parent.parent.parent / "docs" / "record.md"
    path.write_text(document(), encoding="utf-8")
