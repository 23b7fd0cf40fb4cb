"""`steadyflow` and `python -m steadyflow`: the command line of this installation, whatever the working folder holds."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run the command line.

    A file such as scenarios.py in the working directory, or on PYTHONPATH, would be imported in place of the package of
    that name; so the folder of this package is searched first.
    """
    checkout = str(Path(__file__).resolve().parent.parent)
    if sys.path[:1] != [checkout]:
        sys.path.insert(0, checkout)
    from scenarios.__main__ import main as command_line

    command_line()


if __name__ == "__main__":
    main()
