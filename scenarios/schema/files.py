"""Scenario files by name and what TOML they hold, before any schema is built: `list` and most mistakes need no more."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

from scenarios.errors import UserError, nearest
from scenarios.writing import reason

Raw = dict[str, Any]  # Any: what TOML holds


def library() -> dict[str, Path]:
    """Return the shipped scenarios by name."""
    folder = Path(str(resources.files("scenarios"))) / "library"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find(name_or_path: str) -> Path:
    """Return the file that a path or a library name means; raises UserError where there is none."""
    path = Path(name_or_path)
    if path.exists() and not path.is_dir():
        return path
    shipped = library()
    if name_or_path in shipped:
        return shipped[name_or_path]
    if path.is_dir():
        raise UserError(f"{name_or_path}: is a folder; name a file, or a scenario from `steadyflow list`")
    if path.suffix == ".toml" or "/" in name_or_path:
        raise UserError(f"{name_or_path}: no such file")
    raise UserError(f"{name_or_path}: neither a file nor a library scenario{nearest(name_or_path, shipped)}")


def read_toml(path: Path) -> Raw:
    """Return what a scenario file holds, unchecked.

    Raises
    ------
    UserError
        The file cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path.name}: not valid TOML: {error}") from error
    except RecursionError:
        raise UserError(f"{path.name}: nested too deeply for a scenario") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path.name}: is no text in UTF-8 (byte {error.start}); a scenario is a TOML file") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {reason(error)}") from error
