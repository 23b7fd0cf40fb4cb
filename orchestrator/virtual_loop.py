"""An asyncio event loop whose clock jumps: simulated seconds cost only the work done in them.

One heap holds everything that will happen, keyed (when, priority, sequence); `clock` states the order. The run loop is
our own, because the stock one neither orders equal timers nor lets time be exact. Plant events are plain calls from
the heap, and so are asyncio's own timers. Standard library only.

Ignored override errors: the library types its callbacks with variadic type variables, and returns handles that carry
debug fields; ours are plainer on purpose.
"""

from __future__ import annotations

import asyncio
import heapq
import sys
import threading
from asyncio import events, futures
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeVar

from orchestrator.clock import DEADLINE, PLANT, SLEEP
from orchestrator.errors import Deadlock, ForeignThread, Livelock
from orchestrator.virtual_loop_parts import Entry, Handle, NullSelector, OrderedTask, Timer

T = TypeVar("T")

_push, _pop = heapq.heappush, heapq.heappop
# asyncio.timeout() arms its timer with this bound method; knowing it is how completion wins a tie.
_ON_TIMEOUT = asyncio.Timeout._on_timeout  # type: ignore[attr-defined]  # private, but stable from 3.11 to 3.13
PURGE_FLOOR = 512
_new_task, _init_task = asyncio.Task.__new__, asyncio.Task.__init__


class _Halt(BaseException):
    """Ends the run loop from among the callbacks."""


def _halt() -> None:
    raise _Halt


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _fire(timer: Timer) -> None:
    """Run an asyncio timer in its place among the sleeps, not a callback later: one order for both kinds."""
    timer.entry = None
    timer.loop.run_handle(timer)


class VirtualLoop(asyncio.BaseEventLoop):
    """Run asyncio code and plain plant events in virtual time.

    Its own attributes have slots: BaseEventLoop alone fills a dict beyond what the interpreter reads at full speed.

    Parameters
    ----------
    start_s : float
        The first instant, in seconds.
    callbacks_per_instant : int
        How many callbacks may run without the clock moving before `Livelock` is raised.
    """

    __slots__ = ("_cap", "_dead", "_heap", "_now", "_queue", "_selector", "_sequence", "births", "home")

    def __init__(self, start_s: float = 0.0, callbacks_per_instant: int = 1_000_000) -> None:
        super().__init__()
        self._now = start_s
        self._heap: list[Entry] = []
        self._sequence = 0
        self._dead = 0
        self.births = 0
        self.home = copy_context()
        self._cap = callbacks_per_instant
        self._selector = NullSelector()
        self._queue: deque[Any] = self._ready  # type: ignore[attr-defined]  # BaseEventLoop's own
        # Every Future asks its loop for this; bool() is False, and answers without a Python frame.
        self.get_debug = bool  # type: ignore[method-assign]

    # ------------------------------------------------ what asyncio asks of a loop
    def time(self) -> float:
        """Return the virtual present, in seconds."""
        return self._now

    def _process_events(self, event_list: object) -> None:
        """No selector, so never any event."""

    def _write_to_self(self) -> None:
        raise ForeignThread("a thread tried to wake a virtual loop; only its own thread may call it")

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # plainer, see above
        """Refuse foreign threads; the loop's own thread may use it as `call_soon`."""
        if threading.get_ident() != getattr(self, "_thread_id", None):
            raise ForeignThread("another thread touched a virtual loop: virtual time has no room for real threads")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # plainer, see above
        """Refuse: real work in a thread takes real time, which a virtual clock jumps over."""
        name = getattr(func, "__qualname__", repr(func))
        raise ForeignThread(f"run_in_executor({name}) on a virtual loop: call it directly, or model its duration")

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None, **_: Any) -> Any:  # type: ignore[override]  # plainer, see above
        """Start a task that hashes by its birth order; later Pythons pass more keywords, none of which apply.

        Asyncio hashes a task while it is being made (to register it), so its number is there before it is. TaskGroup
        names its tasks afterwards; asyncio would format a name for nothing.
        """
        task: OrderedTask = _new_task(OrderedTask)
        self.births = task.birth = self.births + 1
        _init_task(task, coro, loop=self, name="a task" if name is None else name, context=context)
        return task

    def create_future(self) -> asyncio.Future[Any]:
        """Return a Future of this loop."""
        return futures.Future(loop=self)

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # plainer, see above
        """Run `callback(*args)` at this instant, after what is already ready.

        The loop runs in its `home` context: what belongs there is called without entering it again. Only a caller
        without a context gets a handle: tasks and futures pass theirs, and drop what is returned.
        """
        if context is self.home:
            self._queue.append((callback, args))
            return None
        if context is None:
            handle = Handle((copy_context().run, (callback, *args)))
            self._queue.append(handle)
            return handle
        self._queue.append((context.run, (callback, *args)))
        return None

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # plainer, see above
        """Run the callback at `when`; asyncio's timeouts rank after sleeps of the same instant."""
        if context is self.home:
            timer = Timer((callback, args))
        else:
            timer = Timer(((copy_context() if context is None else context).run, (callback, *args)))
        timer.loop = self
        late = getattr(callback, "__func__", None) is _ON_TIMEOUT
        timer.entry = self.at(when, _fire, timer, DEADLINE if late else SLEEP)
        return timer

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]  # plainer, see above
        """Run the callback after `delay` seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    # ------------------------------------------------ the clock's own calls
    @property
    def scheduled(self) -> int:
        """Return how many entries the heap has ever been given."""
        return self._sequence

    def at(self, when: float, fn: Callable[[Any], object], arg: object, priority: int = PLANT) -> Entry:
        """Call `fn(arg)` at `when` (at this instant if that has passed), straight from the heap."""
        self._sequence = sequence = self._sequence + 1
        entry: Entry = [when if when > self._now else self._now, priority, sequence, fn, arg]
        _push(self._heap, entry)
        return entry

    def forget(self) -> None:
        """Forget all that was to happen: the clock stands still from now on, and only what is ready still runs."""
        self._heap.clear()
        self._dead = 0

    def cancel_at(self, entry: Entry) -> None:
        """Forget an entry; the heap is purged when most of it is dead, so cancelled timers cannot pile up."""
        if entry[3] is not None:
            entry[3] = entry[4] = None
            self._dead = dead = self._dead + 1
            if dead > PURGE_FLOOR and dead * 2 > len(self._heap):
                self._heap[:] = [e for e in self._heap if e[3] is not None]
                heapq.heapify(self._heap)
                self._dead = 0

    async def sleep_until(self, when: float, priority: int = SLEEP) -> None:
        """Wait until `when`: a Future resolved straight from the heap."""
        future: asyncio.Future[None] = futures.Future(loop=self)
        entry = self.at(when, _wake, future, priority)
        try:
            await future
        except asyncio.CancelledError:
            self.cancel_at(entry)
            raise

    # ------------------------------------------------ the run loop
    def run_forever(self) -> None:
        """Run until stopped; raises Deadlock when nothing can ever happen again."""
        self._check_closed()  # type: ignore[attr-defined]
        self._check_running()  # type: ignore[attr-defined]
        self._thread_id: int | None = threading.get_ident()
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(
            firstiter=self._asyncgen_firstiter_hook,  # type: ignore[attr-defined]
            finalizer=self._asyncgen_finalizer_hook,  # type: ignore[attr-defined]
        )
        events._set_running_loop(self)
        try:
            self.home.run(self._spin)
        finally:
            self._stopping = False
            self._thread_id = None
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def stop(self) -> None:
        """Stop after the callbacks that are ready now."""
        if not self._stopping:
            self._stopping = True
            self._queue.append((_halt, ()))

    def _spin(self) -> None:
        heap, ready, cap, pop = self._heap, self._queue, self._cap, _pop
        popleft, now = ready.popleft, self._now
        count = 0  # what ran at this instant
        while True:
            while ready:
                run, call = popleft()
                count += 1
                if count > cap:
                    raise Livelock(self._story(f"{count} callbacks ran at t = {self._now:.9g} s"))
                try:
                    run(*call)
                except _Halt:
                    return
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    self._report(run, call, error)
            if not heap:
                raise Deadlock(self._story(f"nothing is ready and no timer is set at t = {self._now:.9g} s"))
            entry = pop(heap)
            when, priority, _, fn, arg = entry
            if fn is None:  # a cancelled entry never moves the clock
                self._dead -= 1
                continue
            if when != now:
                self._now = now = when
                count = 0
            else:
                count += 1
                if count > cap:
                    raise Livelock(self._story(f"{count} events ran at t = {when:.9g} s"))
            entry[3] = entry[4] = None  # an entry that is kept must not keep what it held
            fn(arg)
            # What is ready waits for every event of this instant and priority.
            while ready and heap and heap[0][0] == when and heap[0][1] == priority:
                entry = pop(heap)
                fn, arg = entry[3], entry[4]
                if fn is None:
                    self._dead -= 1
                    continue
                entry[3] = entry[4] = None
                fn(arg)
                count += 1
                if count > cap:
                    raise Livelock(self._story(f"{count} events ran at t = {when:.9g} s"))

    def run_handle(self, handle: Handle) -> None:
        """Run a handle's callback now."""
        run, call = handle
        try:
            run(*call)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._report(run, call, error)

    def _report(self, run: Any, call: tuple[Any, ...], error: BaseException) -> None:
        """Report a callback's exception and go on, as asyncio does."""
        callback = call[0] if isinstance(getattr(run, "__self__", None), Context) else run
        self.call_exception_handler({"message": f"exception in {callback!r}", "exception": error})

    def _story(self, what: str) -> str:
        names = sorted(task.get_name() for task in asyncio.all_tasks(self))
        shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
        return f"{what}; tasks that wait: {shown or 'none'}"
