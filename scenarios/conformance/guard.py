"""What a law may not do while it acts: read a clock, files, the network, or the interpreter's own memory, or hang.

`forbid` puts itself around the methods of a law. Inside them the interpreter's audit events (files, sockets, processes,
frames, the garbage collector) and the clocks of `time` raise `Forbidden`, and a call that computes too long is ended.
A law that swallows the exception is caught all the same: what it tried stands in `TRIED`.
"""

from __future__ import annotations

import functools
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

LONGEST_CALL_S = 3.0
"""CPU seconds after which one call counts as hanging; the slowest shipped law takes milliseconds."""
HANGS = f"takes more than {LONGEST_CALL_S:g} CPU-seconds for one call"

CLOCKS = (
    *("time", "monotonic", "perf_counter", "process_time", "thread_time", "localtime", "gmtime", "ctime", "strftime"),
    *("sleep", "time_ns", "monotonic_ns", "perf_counter_ns", "process_time_ns", "thread_time_ns", "clock_gettime"),
)
# Audit events of the interpreter (docs.python.org, "Audit events table"), by their beginning.
EVENTS: Mapping[str, str] = {
    "open": "opens a file", "os.": "asks the operating system", "socket.": "uses the network",
    "subprocess.": "starts a process", "shutil.": "moves files", "glob.": "lists files", "tempfile.": "makes files",
    "sqlite3.": "opens a database", "urllib.": "uses the network", "http.": "uses the network",
    "sys._getframe": "looks at its callers", "sys._current_frames": "looks at other frames",
    "gc.get_": "looks through the interpreter's memory", "sys.settrace": "traces", "sys.setprofile": "traces",
    "ctypes.": "reaches memory by ctypes", "code.__new__": "makes code",
}  # fmt: skip
# numpy asks for its caller's frame when it warns; reading its own package's files on first use is the interpreter's.
OWN_CALLERS = ("warnings", "importlib", "numpy")

TRIED: list[str] = []
"""What a law tried that it may not, in order, each once."""

_inside = 0


class Forbidden(Exception):
    """A law did what no law may."""


def _forbid(what: str) -> None:
    if what not in TRIED:
        TRIED.append(what)
    raise Forbidden(what)


def _called_by_the_library() -> bool:
    global _inside
    depth, _inside = _inside, 0  # looking at frames is itself an event
    try:
        frame: Any = sys._getframe(2)
        name = str(frame.f_globals.get("__name__", ""))
        return name.split(".")[0] in OWN_CALLERS
    finally:
        _inside = depth


def _audit(event: str, _: tuple[Any, ...]) -> None:
    if not _inside:
        return
    for start, what in EVENTS.items():
        if event.startswith(start) and not _called_by_the_library():
            _forbid(f"{what} ({event})")


def _guarded_clock(name: str, clock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(clock)
    def read(*arguments: Any) -> Any:
        if _inside:
            _forbid(f"{'sleeps' if name == 'sleep' else 'reads the clock'} (time.{name})")
        return clock(*arguments)

    return read


def _too_long(*_: object) -> None:
    _forbid(HANGS)


def watch() -> None:
    """Begin: before a law's file is imported, once in a process."""
    for name in CLOCKS:
        clock = getattr(time, name, None)
        if clock is not None:
            setattr(time, name, _guarded_clock(name, clock))
    sys.addaudithook(_audit)
    if hasattr(signal, "SIGVTALRM"):
        signal.signal(signal.SIGVTALRM, _too_long)


def forbid(law: type[Any], methods: tuple[str, ...]) -> None:
    """Guard methods of a law's class."""
    for name in methods:
        method = getattr(law, name, None)
        if method is not None:
            setattr(law, name, _guarded(method))


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*arguments: Any, **named: Any) -> Any:
        global _inside
        if HANGS in TRIED:  # once is enough: a search for the smallest example would hang as often
            raise Forbidden(HANGS)
        timed = _inside == 0 and hasattr(signal, "setitimer")
        if timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_CALL_S)
        _inside += 1
        try:
            return method(*arguments, **named)
        finally:
            _inside -= 1
            if timed:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)

    return call
