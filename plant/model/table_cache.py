"""Cache of tables on disk, keyed by a digest of the description and of the source text of the equations."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from pathlib import Path

import numpy as np
import orjson

from plant.model.kernels import Array

# The files whose equations decide what stands in a table: an edit of any makes the tables on disk obsolete.
_EQUATIONS = (
    *(
        "attention",
        "attention_ffn",
        "balance",
        "attention_kernels",
        "expert_kernels",
        "hardware",
        "kernels",
        "layer",
        "moe",
    ),
    *("network", "precision", "regimes", "tables"),
)


def cache_directory() -> Path:
    """Return where tables are kept: `STEADYFLOW_CACHE_DIR`, else the user's cache folder on this platform."""
    directory = os.environ.get("STEADYFLOW_CACHE_DIR")
    if directory:
        return Path(directory) / "tables"
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]) / "steadyflow" / "tables"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "steadyflow" / "tables"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "steadyflow" / "tables"
    return Path.home() / ".cache" / "steadyflow" / "tables"


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__, **{k: _plain(v) for k, v in asdict(value).items()}}
    if hasattr(value, "_asdict"):
        return {k: _plain(v) for k, v in value._asdict().items()}
    return value


def digest_of(*parts: object) -> str:
    """Return 24 hexadecimal digits over descriptions (dataclasses, numbers) and the text of the equations."""
    h = hashlib.sha256()
    for part in parts:
        h.update(orjson.dumps(_plain(part), option=orjson.OPT_SORT_KEYS, default=_plain))
    folder = Path(__file__).parent
    for name in _EQUATIONS:
        h.update((folder / f"{name}.py").read_bytes())
    return h.hexdigest()[:24]


def cached_arrays(digest: str, build: Callable[[], dict[str, Array]], *, enabled: bool = True) -> dict[str, Array]:
    """Return the arrays under `digest`, building and storing them when they are missing or damaged.

    The file is written under another name and renamed. A folder that cannot be written costs time, never the result.
    """
    if not enabled:
        return build()
    path = cache_directory() / f"{digest}.npz"
    try:
        with np.load(path) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError):
        arrays = build()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # its keyword `allow_pickle` shadows **kwds
        os.replace(temporary, path)
    except OSError:
        pass
    return arrays
