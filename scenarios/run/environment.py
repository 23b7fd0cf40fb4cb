"""The versions of Python and of the packages that numbers depend on, for a run's manifest."""

from __future__ import annotations

import platform
from importlib import metadata


def environment() -> dict[str, str]:
    """Return the versions of Python and of the packages."""
    packages = ("steadyflow", "numpy", "scipy", "pandas", "pyarrow")
    versions = {"python": platform.python_version()}
    for name in packages:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return versions
