"""`steadyflow`, and `python -m scenarios`: the command line, which takes an interrupt well from its first import on."""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main() -> None:
    """Run the command line; an interrupt, also one amid the imports, is one line and exit code 130."""
    hears = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if hears:  # an exception amid the imports of compiled modules may come out as any other
        signal.signal(signal.SIGINT, _leave)
    from scenarios.cli import main as command_line

    try:
        if hears:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command_line()
    except KeyboardInterrupt:
        _say()
        sys.exit(INTERRUPTED)


def _leave(*_: object) -> None:
    _say()
    os._exit(INTERRUPTED)  # nothing has begun that would have to be put away


def _say() -> None:
    sys.stderr.write("steadyflow: interrupted; nothing was kept\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
