"""From a TOML file (or a library name) to a `Scenario`: overrides by path, and errors of one line with the place."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from scenarios.errors import UserError, nearest
from scenarios.schema.files import Raw, find, read_toml
from scenarios.schema.mistakes import TABLES, mistakes
from scenarios.schema.scenario import Scenario

OWN = ("reconfigure", "ready")  # tables of the scenario in whose place a candidate may state its own


def load(name_or_path: str | Path, sets: Iterable[str] = (), *, allow_code: bool = False) -> Scenario:
    """Read a scenario.

    Parameters
    ----------
    name_or_path : str or Path
        A TOML file or a library name.
    sets : iterable of str
        Overrides, each `path=value`, as `plant.dead_time_s=4` or `candidates.NAME.admission.k_per_s=0.2`.
    allow_code : bool
        Take laws of `kind = "file"` from anywhere; otherwise their files must lie in the scenario's folder or below.

    Raises
    ------
    UserError
        One line: the file, the place, what is wrong, what would be right.
    """
    path = find(str(name_or_path))
    raw = read_toml(path)
    if not allow_code:
        _refuse_far_code(raw, path)
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UserError(f"--set {text}: must be PATH=VALUE, as plant.dead_time_s=4")
        try:
            override(raw, key.strip(), value.strip())
        except UserError as error:
            raise UserError(f"--set {text}: {error}") from error
    _find_tables(raw, path.parent)
    return validate(raw, path.name)


def _refuse_far_code(raw: Raw, path: Path) -> None:
    """Raise UserError where the scenario itself names code that does not lie beside it: it may be a stranger's."""
    listed = raw.get("candidates")
    for k, item in enumerate(listed if isinstance(listed, list) else ()):
        for slot, law in item.items() if isinstance(item, dict) else ():
            if not isinstance(law, dict) or law.get("kind") != "file":
                continue
            if not Path(str(law.get("file"))).resolve().is_relative_to(path.parent.resolve()):
                raise UserError(
                    f"{path.name}: candidates.{item.get('name', k)}.{slot}.file: {law.get('file')} does not lie beside "
                    "the scenario; `run` and `compare` take code from elsewhere with --allow-code"
                )


def _find_tables(raw: Raw, folder: Path) -> None:
    """Let the files of `times` be looked up from the scenario's folder; the resolved scenario names them in full."""
    plant = raw.get("plant")
    configurations = plant.get("configurations") if isinstance(plant, dict) else None
    for configuration in configurations.values() if isinstance(configurations, dict) else ():
        times = configuration.get("times") if isinstance(configuration, dict) else None
        if isinstance(times, dict) and times.get("kind") == "table":
            for key in times.keys() & {"file", "fills"}:
                times[key] = str((folder / str(times[key])).resolve())


def validate(raw: Raw, name: str) -> Scenario:
    """Check a raw scenario; `name` stands in errors for the file."""
    try:
        return Scenario.model_validate(raw).read_from(name)
    except ValidationError as error:
        raise UserError(f"{name}: {mistakes(error, raw)}") from error


def override(raw: Raw, key: str, value: str | Any) -> None:
    """Set one value by its path; a candidate (or a pool's) list entry is found by its name.

    Raises
    ------
    UserError
        The path leads through something that is not there.
    """
    steps = key.split(".")
    if steps[0] in OWN:
        _refuse_hidden(raw, key, steps[0])
    here: Any = raw
    for depth, step in enumerate(steps[:-1]):
        here = _step_into(here, step, ".".join(steps[: depth + 1]))
    last = steps[-1]
    parsed = _parse(value) if isinstance(value, str) else value
    if isinstance(here, list):
        here[_index(here, last, key)] = parsed
    elif isinstance(here, dict):
        here[last] = parsed
    else:
        raise UserError(f"{key}: {'.'.join(steps[:-1])} is a value, not a table")


def _refuse_hidden(raw: Raw, key: str, table: str) -> None:
    """Refuse to set what no candidate would look at, because each states a table of its own."""
    candidates = raw.get("candidates")
    if isinstance(candidates, list) and candidates and all(isinstance(c, dict) and table in c for c in candidates):
        named = candidates[0].get("name", 0)
        raise UserError(f"every candidate states its own {table}; set candidates.{named}.{key}")


def _step_into(here: Any, step: str, path: str) -> Any:
    if isinstance(here, list):
        return here[_index(here, step, path)]
    if isinstance(here, dict):
        if step not in here and step not in TABLES:
            raise UserError(f"{path}: no such key{nearest(step, [*here, *TABLES])}")
        return here.setdefault(step, {})
    raise UserError(f"{path}: leads through a value, not a table")


def _index(items: list[Any], step: str, path: str) -> int:
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    if step in names:
        return names.index(step)
    if step.isdigit() and int(step) < len(items):
        return int(step)
    known = [name for name in names if name] or [str(i) for i in range(len(items))]
    raise UserError(f"{path}: no such entry{nearest(step, known)}; there are {', '.join(known)}")


def _parse(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def to_toml(scenario: Scenario) -> str:
    """Return the scenario with every default stated, as TOML; what is None is left out."""
    return tomli_w.dumps(_without_none(scenario.model_dump(mode="json")))


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_none(inner) for inner in value]
    return value
