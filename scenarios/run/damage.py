"""What a record must hold for the rest to read it: a folder that lacks some of it is refused by file and by name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scenarios.errors import UserError
from scenarios.run.judged import JSON_FIELDS

SUMMARY = ("window_s", "flow", "latency", "goodput", "counts", "headline")
SIGNALS = ("t_s", "decode_occupancy_ratio_mean", "backlog_turns_mean", "ready_turns_mean", "in_flight_turns_mean")


def refuse_damaged(
    path: Path, meta: Any, judged: Any, columns: Mapping[str, tuple[Iterable[str], Iterable[str]]], scenario_toml: str
) -> None:
    """Raise UserError for the first thing that a record lacks.

    Parameters
    ----------
    path : Path
        The run's folder.
    meta, judged : Any
        What `manifest.json` and `verdict.json` hold.
    columns : mapping of str to (names, names)
        Of each table, the columns that it has and those that it must have.
    scenario_toml : str
    """
    _holds(path / "manifest.json", meta, ("candidate", "title", "question"), str)
    file = path / "verdict.json"
    _holds(file, judged, ("summary", "verdict"), dict)
    _holds(file, judged["summary"], SUMMARY, object, "summary.")
    for signal, fields in judged["verdict"].items():
        _holds(file, fields, JSON_FIELDS, object, f"verdict.{signal}.")
    for name, (there, wanted) in columns.items():
        _holds(path / name, dict.fromkeys(there), wanted, object)
    try:
        tomllib.loads(scenario_toml)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path / 'scenario.toml'}: not valid TOML: {error}") from error


def _holds(file: Path, value: Any, keys: Iterable[str], kind: type, before: str = "") -> None:  # Any: what JSON holds
    for key in keys:
        if not isinstance(value, dict) or key not in value or not isinstance(value[key], kind):
            raise UserError(f"{file}: lacks {before}{key}: damaged, or by another version; run the scenario again")
