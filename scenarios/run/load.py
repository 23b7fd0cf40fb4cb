"""Read a run's folder, and refuse one whose files lack a column or a field, naming both."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from orchestrator.catalogue import T_S
from scenarios.catalogue.signals import LEVELS
from scenarios.catalogue.verdict import VERDICT_FIELDS, SignalVerdict
from scenarios.errors import UserError
from scenarios.run.record import CURVE_SCHEMA, TURN_SCHEMA, RunData

SUMMARY = ("window_s", "flow", "latency", "goodput", "counts", "headline")
SIGNALS = (T_S, *(f"{row.name}_mean" for row in LEVELS))
VERDICT = tuple(f.name for f in VERDICT_FIELDS)


def load(path: Path) -> RunData:
    """Read a run's folder.

    Raises
    ------
    UserError
        There is no run there, or a file of it is missing or damaged.
    """
    if not (path / "manifest.json").is_file():
        raise UserError(f"{path}: no run here: a run's folder holds manifest.json")
    name = "manifest.json"
    try:
        meta = orjson.loads((path / name).read_bytes())
        name = "verdict.json"
        judged = orjson.loads((path / name).read_bytes())
        name = "turns.parquet"
        turns = pq.read_table(path / name).to_pandas()
        name = "signals.parquet"
        signals = pq.read_table(path / name).to_pandas()
        name = "curves.parquet"
        curves = pq.read_table(path / name).to_pandas()
        name = "events.jsonl.zst"
        with zstandard.open(path / name, "rb") as lines:
            events = [orjson.loads(line) for line in lines.read().splitlines()]
        name = "scenario.toml"
        scenario_toml = (path / name).read_text(encoding="utf-8")
        if not (path / "events.jsonl.zst").stat().st_size:
            raise UserError(f"{path / 'events.jsonl.zst'}: is empty; run the scenario again")
    except FileNotFoundError:
        raise UserError(f"{path / name}: is missing: the record is incomplete; run the scenario again") from None
    except (OSError, ValueError, EOFError, zstandard.ZstdError, pa.ArrowException) as error:
        raise UserError(f"{path / name}: cannot be read: {str(error).splitlines()[0]}") from error
    columns = {
        "turns.parquet": (turns.columns, TURN_SCHEMA.names),
        "signals.parquet": (signals.columns, SIGNALS),
        "curves.parquet": (curves.columns, CURVE_SCHEMA.names),
    }
    _refuse_damaged(path, meta, judged, columns, scenario_toml)
    return RunData(
        candidate=meta.pop("candidate"),
        title=meta.pop("title"),
        question=meta.pop("question"),
        signals=signals,
        turns=turns,
        events=events,
        verdicts={signal: _verdict(signal, fields, curves) for signal, fields in judged["verdict"].items()},
        summary=judged["summary"],
        meta=meta,
        scenario_toml=scenario_toml,
    )


def _verdict(signal: str, fields: dict[str, Any], curves: pd.DataFrame) -> SignalVerdict:
    of_signal = curves[curves["signal"] == signal]
    acf, spectrum = of_signal[of_signal["curve"] == "acf"], of_signal[of_signal["curve"] == "spectrum"]
    values: dict[str, Any] = {name: tuple(v) if isinstance(v := fields[name], list) else v for name in VERDICT}
    return SignalVerdict(
        signal=signal,
        **values,
        acf_lags_s=acf["x"].to_numpy(),
        acf=acf["y"].to_numpy(),
        spectrum_hz=spectrum["x"].to_numpy(),
        spectrum=spectrum["y"].to_numpy(),
    )


def runs_in(path: Path) -> list[Path]:
    """Return the run folders meant by `path`: itself, or the runs directly inside it, by name.

    Raises
    ------
    UserError
        There is none.
    """
    if (path / "manifest.json").is_file():
        return [path]
    inside = sorted(p.parent for p in path.glob("*/manifest.json")) if path.is_dir() else []
    if not inside:
        here = "nothing of that name" if not os.path.lexists(path) else "no run's folder"
        raise UserError(f"{path}: {here}; give a folder that `steadyflow run` or `compare` has written")
    return [p for p in inside if not p.name.startswith(".")]


def _refuse_damaged(
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
    _require(path / "manifest.json", meta, ("candidate", "title", "question"), str)
    file = path / "verdict.json"
    _require(file, judged, ("summary", "verdict"), dict)
    _require(file, judged["summary"], SUMMARY, object, "summary.")
    for signal, fields in judged["verdict"].items():
        _require(file, fields, VERDICT, object, f"verdict.{signal}.")
    for name, (there, wanted) in columns.items():
        _require(path / name, dict.fromkeys(there), wanted, object)
    try:
        tomllib.loads(scenario_toml)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path / 'scenario.toml'}: not valid TOML: {error}") from error


def _require(file: Path, value: Any, keys: Iterable[str], kind: type, before: str = "") -> None:  # Any: what JSON holds
    for key in keys:
        if not isinstance(value, dict) or key not in value or not isinstance(value[key], kind):
            raise UserError(f"{file}: lacks {before}{key}: damaged, or by another version; run the scenario again")
