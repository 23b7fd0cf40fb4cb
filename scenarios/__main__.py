"""Entry point of `steadyflow` and `python -m scenarios`; an interrupt is handled from the first import on."""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def main() -> None:
    """Run the command line; an interrupt, also during the imports, is one line and exit code 130."""
    handles_interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if handles_interrupts:  # an exception raised while a compiled module is imported may turn into another one
        signal.signal(signal.SIGINT, _exit_at_once)
    from scenarios.cli import main as command_line

    try:
        if handles_interrupts:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command_line()
    except KeyboardInterrupt:
        _report_interrupt()
        sys.exit(INTERRUPTED)


def _exit_at_once(*_: object) -> None:
    _report_interrupt()
    os._exit(INTERRUPTED)  # nothing has started that needs cleaning up


def _report_interrupt() -> None:
    sys.stderr.write("steadyflow: interrupted; nothing was kept\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main()
