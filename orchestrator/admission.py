"""The admission queue: it releases waiting turns, paced without bursts, within caps, class by class in order.

A waiting turn is an entry in a line, not yet a coroutine: a backlog of a million costs memory for a million records.

Pacing integrates the rate: phase' = release_per_s while the gate is open; a turn is released each time that phase
reaches 1, and phase never exceeds 1, so an idle queue saves up one release and no more.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.clock import Clock
from orchestrator.ledger import WAITING, ClassCounts, Ledger, Turn
from orchestrator.messages import AdmissionCommand
from orchestrator.rng import uniform
from orchestrator.turn import ClassName

Order = Literal["fifo", "priority", "edf", "weighted_fair"]
ROUNDING = 1e-9  # a phase this near to 1 is 1: a timer set by division lands a few ulps off


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassSpec:
    """One service class: objectives, weight in fair order and priority (higher goes first)."""

    name: ClassName
    ttft_s: float | None = None
    tpot_s: float | None = None
    weight: float = 1.0
    priority: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionLimits:
    """What the actuator can do: the highest rate, how fast the rate may change, how many turns may wait."""

    max_release_per_s: float = math.inf
    slew_per_s2: float = math.inf
    queue_limit_turns: int | None = None
    order: Order = "fifo"


class _ClassQueue:
    """The turns of one class that wait, oldest first, and the class's place in weighted fair order."""

    __slots__ = ("cap", "counts", "reserve", "shed", "spec", "virtual", "waiting")

    def __init__(self, spec: ClassSpec, counts: ClassCounts) -> None:
        self.spec = spec
        self.counts = counts
        self.waiting: deque[Turn] = deque()
        self.cap: int | None = None
        self.reserve: int | None = None
        self.shed: float | None = None
        self.virtual = 0.0


class AdmissionQueue:
    """Admission gate: `enter` puts a turn in line; `set` moves the actuator.

    Parameters
    ----------
    clock : Clock
    ledger : Ledger
    classes : sequence of ClassSpec, in the ledger's order
    limits : AdmissionLimits
    shed_stream : int
        Key of the random stream that decides which arrivals are shed.
    released : callable
        Called with every turn at its release; the ledger has moved it to FILLING by then.
    opens_before_first_command : bool
        False: nobody is let in before the first command, so that a law acts before its first turn.
    """

    def __init__(
        self,
        clock: Clock,
        ledger: Ledger,
        classes: list[ClassSpec],
        limits: AdmissionLimits,
        shed_stream: int,
        released: Callable[[Turn], None],
        opens_before_first_command: bool = True,
    ) -> None:
        self._clock, self._ledger, self._limits, self._stream = clock, ledger, limits, shed_stream
        self._released = released
        self._class_queues = [_ClassQueue(spec, counts) for spec, counts in zip(classes, ledger.classes, strict=True)]
        self._sole = self._class_queues[0] if len(self._class_queues) == 1 else None
        self._open, self._commanded = True, opens_before_first_command
        self._rate = limits.max_release_per_s
        self._rate_set_s = 0.0
        self._cap: int | None = None
        self._phase, self._phase_s = 1.0, 0.0
        self._virtual = 0.0
        self._pumping = False
        self._timer: Any = None  # an entry of the clock, whose type is the clock's own
        self._by_class: dict[str, Any] = {"cap": None, "reserve": None, "shed": None}
        self._setpoint_turns: float | None = None
        self.refuses = limits.queue_limit_turns is not None

    @property
    def applied(self) -> AdmissionCommand:
        """What the actuator stands at, after clipping."""
        return AdmissionCommand(
            gate_open=self._open,
            release_per_s=self._rate,
            in_flight_cap_turns=self._cap,
            class_cap_turns=self._by_class["cap"],
            reserve_turns=self._by_class["reserve"],
            shed_ratio=self._by_class["shed"],
            batch_setpoint_turns=self._setpoint_turns,
        )

    # ------------------------------------------------ turns
    def refusal(self, turn: Turn) -> str | None:
        """Return the bucket in which this arrival is refused, or None; need not be asked while `refuses` is False."""
        queue = self._class_queues[turn.class_index]
        limit = self._limits.queue_limit_turns
        if limit is not None and self.backlog() > limit and not self._goes_now(queue):
            return "queue_full"
        if queue.shed is not None and uniform(self._stream, turn.view.key) < queue.shed:
            return "shed"
        return None

    def _goes_now(self, queue: _ClassQueue) -> bool:
        """Tell whether a turn that joins this queue would be released at once, and so never wait."""
        self._drop_gone()
        if queue.waiting or not self._open or not self._commanded or self._timer is not None:
            return False
        self._accrue(self._clock.now())
        in_flight = self._ledger.in_flight.value
        capped = self._cap is not None and in_flight >= self._cap
        return (
            not capped and (self._rate == math.inf or self._phase >= 1.0 - ROUNDING) and self._may_go(queue, in_flight)
        )

    def enter(self, turn: Turn) -> None:
        """Put a turn in line; it may be released at once."""
        queue = self._class_queues[turn.class_index]
        if queue is not self._sole and not queue.waiting:  # start-time fair queueing: an idle class saves up no turns
            queue.virtual = max(queue.virtual, self._virtual)
        queue.waiting.append(turn)
        if self._timer is None and not self._pumping:
            self.pump()

    def backlog(self) -> int:
        """Return how many turns wait."""
        return sum(queue.counts.backlog for queue in self._class_queues)

    def oldest_s(self) -> float | None:
        """Return when the longest waiting turn arrived; None: none waits."""
        self._drop_gone()
        heads = [queue.waiting[0].view.arrived_s for queue in self._class_queues if queue.waiting]
        return min(heads, default=None)

    # ------------------------------------------------ the actuator
    def set(self, command: AdmissionCommand) -> None:
        """Apply a command: clip the rate to the limits, slew it, and release what may go now."""
        now_s = self._clock.now()
        self._commanded = True
        self._accrue(now_s)
        if command.gate_open is not None:
            self._open = command.gate_open
        if command.release_per_s is not None:
            self._rate = self._clipped(command.release_per_s, now_s)
            self._rate_set_s = now_s
        if command.in_flight_cap_turns is not None:
            self._cap = max(0, command.in_flight_cap_turns)
        if command.class_cap_turns is not None:
            self._set_classes("cap", command.class_cap_turns)
        if command.reserve_turns is not None:
            self._set_classes("reserve", command.reserve_turns)
        if command.shed_ratio is not None:
            self._set_classes("shed", command.shed_ratio)
            self.refuses = True
        if command.batch_setpoint_turns is not None:
            self._setpoint_turns = command.batch_setpoint_turns
        if self._timer is not None:
            self._clock.cancel_at(self._timer)
            self._timer = None
        self.pump()

    def _clipped(self, wanted: float, now_s: float) -> float:
        limits = self._limits
        rate = min(max(wanted, 0.0), limits.max_release_per_s)
        if math.isfinite(limits.slew_per_s2) and math.isfinite(self._rate):
            step = limits.slew_per_s2 * (now_s - self._rate_set_s)
            rate = min(max(rate, self._rate - step), self._rate + step)
        return rate

    def _set_classes(self, name: str, values: Mapping[ClassName, Any]) -> None:
        for queue in self._class_queues:
            if queue.spec.name in values:
                setattr(queue, name, values[queue.spec.name])
        values_set = {
            queue.spec.name: getattr(queue, name) for queue in self._class_queues if getattr(queue, name) is not None
        }
        self._by_class[name] = values_set or None

    # ------------------------------------------------ the release
    def _accrue(self, now_s: float) -> None:
        elapsed_s = now_s - self._phase_s
        if self._open and self._rate > 0.0 and elapsed_s > 0.0:
            phase = self._phase + self._rate * elapsed_s
            self._phase = phase if phase < 1.0 else 1.0
        self._phase_s = now_s

    def pump(self) -> None:
        """Release every turn that may go at this instant, and set the timer for the next one."""
        if self._timer is not None or self._pumping or not self._open or not self._commanded:
            return
        sole, rate = self._sole, self._rate
        if sole is not None and not sole.waiting:
            return
        now_s = self._clock.now()
        self._pumping = True  # a release may bring the next arrival, and so this call again
        while (sole is None or sole.waiting) and (queue := self._next_class()) is not None:
            if rate < math.inf:
                if now_s != self._phase_s:
                    self._accrue(now_s)
                if self._phase < 1.0 - ROUNDING:
                    if rate > 0.0:
                        self._timer = self._clock.at(now_s + (1.0 - self._phase) / rate, self._due, None)
                    break
                self._phase = 0.0  # it never exceeds 1, and 1 less the rounding counts as 1
            self._release(queue, now_s)
        self._pumping = False

    def _due(self, _: object) -> None:
        self._timer = None
        self._phase, self._phase_s = 1.0, self._clock.now()
        self.pump()

    def _release(self, queue: _ClassQueue, now_s: float) -> None:
        turn = queue.waiting.popleft()
        if queue is not self._sole:
            self._virtual = queue.virtual
            queue.virtual += 1.0 / queue.spec.weight
        self._ledger.release(turn, now_s)
        self._released(turn)

    def _drop_gone(self) -> None:
        """Forget turns at the head that were cancelled while they waited."""
        for queue in self._class_queues:
            while queue.waiting and queue.waiting[0].stage is not WAITING:
                queue.waiting.popleft()

    def _next_class(self) -> _ClassQueue | None:
        """Return the class whose head goes next, or None when none may."""
        in_flight = self._ledger.in_flight.value
        if self._cap is not None and in_flight >= self._cap:
            return None
        if self._sole is not None:  # one class: no order to keep
            queue, waiting = self._sole, self._sole.waiting
            while waiting and waiting[0].stage is not WAITING:
                waiting.popleft()
            return queue if waiting and (queue.cap is None or queue.counts.in_flight < queue.cap) else None
        self._drop_gone()
        ready = [queue for queue in self._class_queues if queue.waiting and self._may_go(queue, in_flight)]
        return min(ready, key=self._rank, default=None)

    def _may_go(self, queue: _ClassQueue, in_flight: float) -> bool:
        if queue.cap is not None and queue.counts.in_flight >= queue.cap:
            return False
        if self._cap is None:
            return True
        kept = sum(
            max(0, other.reserve - other.counts.in_flight)
            for other in self._class_queues
            if other is not queue and other.reserve is not None
        )
        return in_flight < self._cap - kept

    def _rank(self, queue: _ClassQueue) -> tuple[float, float]:
        """Return the key by which `admission.order` sorts the heads; the smallest goes first."""
        view = queue.waiting[0].view
        order = self._limits.order
        if order == "priority":
            return -queue.spec.priority, view.turn_id
        if order == "edf":
            return view.arrived_s + (math.inf if queue.spec.ttft_s is None else queue.spec.ttft_s), view.turn_id
        if order == "weighted_fair":
            return queue.virtual, view.turn_id
        return view.turn_id, 0.0
