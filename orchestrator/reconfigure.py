"""Carrying out capacity commands: moving workers between prepared configurations, or back when a load fails.

The capacity loop says how many workers each configuration should have; this module picks which, drains them, has the
plant load and warm them, and puts them to work in a new epoch. What it holds back, whatever the law says:

    dwell        a worker that changed less than `dwell_s` ago stays
    flap budget  no more than `flips_per_hour` starts in any hour
    pending      no more than `max_pending_workers` under way at once
    drain        its turns end where they are, move to other workers, or are filled again (`worker_drainer`)
    whole        a command that cannot begin whole, within the workers that exist, does not begin (`atomic`)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass

from orchestrator.clock import Clock
from orchestrator.errors import SteadyflowError, WorkerLost
from orchestrator.messages import CapacityCommand
from orchestrator.ports import Plant
from orchestrator.recorder import Recorder
from orchestrator.turn import ConfigurationName
from orchestrator.worker import State, Worker
from orchestrator.worker_drainer import Drain
from orchestrator.worker_registry import WorkerRegistry

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconfigureSpec:
    """Limits on flips; None: no limit.

    `reserve` names the configuration that gives and takes what a command leaves open: with it, asking for one more
    decode worker takes it from there. `attempts`: loads tried before the worker goes back to what it was. `drain`: what
    becomes of the turns on a worker that is to change.
    """

    dwell_s: float = 0.0
    max_pending_workers: int | None = None
    flips_per_hour: int | None = None
    reserve: ConfigurationName | None = None
    atomic: bool = True
    attempts: int = 1
    drain: Drain = "wait"


class WorkerLifecycle:
    """Carries out capacity commands: picks workers, and takes each through drain and load.

    Parameters
    ----------
    clock : Clock
    plant : Plant
    recorder : Recorder
    spec : ReconfigureSpec
    registry : WorkerRegistry
    empty : callable
        `empty(worker)` has the turns of a worker that drains leave it.
    spawn : callable
        Starts a coroutine in the root task group.

    Attributes
    ----------
    flips, refused, rolled_back, flaps : int
        Flips begun; commands that could not begin whole; loads that failed for good; flips that sent a worker back to
        the configuration it had come from.
    reversals : int
        How often the size of a configuration (the reserve aside) turned from growing to shrinking or back.
    drain_s, dead_s : float
        Worker-seconds that flips spent draining, and from their begin to their end: capacity that served nothing new.
    """

    def __init__(
        self,
        clock: Clock,
        plant: Plant,
        recorder: Recorder,
        spec: ReconfigureSpec,
        registry: WorkerRegistry,
        empty: Callable[[Worker], None],
        spawn: Callable[[Coroutine[None, None, None]], object],
    ) -> None:
        self._clock, self._plant, self._recorder, self._spec = clock, plant, recorder, spec
        self._registry, self._empty, self._spawn = registry, empty, spawn
        self._workers = registry.workers
        self.flips = self.refused = self.rolled_back = self.flaps = self.reversals = 0
        self.drain_s = self.dead_s = 0.0
        self._starts_s: deque[float] = deque()
        self._refused: str | None = None
        self._heading: dict[ConfigurationName, int] = {}

    def counts(self) -> Mapping[ConfigurationName, int]:
        """Return workers per configuration, each counted where it is going."""
        counts: dict[ConfigurationName, int] = {}
        for worker in self._workers.values():
            if not worker.absent:
                counts[worker.target] = counts.get(worker.target, 0) + 1
        return counts

    # ------------------------------------------------ a command
    def apply(self, command: CapacityCommand) -> CapacityCommand:
        """Start the flips that bring the counts to the targets, surplus to deficit; return what will be so."""
        if command.target_workers is not None:
            moves = self._moves(command.target_workers)
            chosen = self._chosen(moves) if moves else []
            for worker, target in chosen:
                self._begin(worker, target)
        return CapacityCommand(
            target_workers=dict(self.counts()), in_flight_setpoint_turns=command.in_flight_setpoint_turns
        )

    def _moves(self, targets: Mapping[ConfigurationName, int]) -> list[tuple[ConfigurationName, ConfigurationName]]:
        """Pair what is too many with what is too few; the reserve gives and takes what is left over."""
        counts, reserve = self.counts(), self._spec.reserve
        wanted = {name: n for name, n in targets.items() if name != reserve}
        surplus = [name for name, n in wanted.items() for _ in range(max(0, counts.get(name, 0) - n))]
        deficit = [name for name, n in wanted.items() for _ in range(max(0, n - counts.get(name, 0)))]
        lacking = len(deficit) - len(surplus)
        if reserve is not None:
            surplus += [reserve] * min(max(0, lacking), counts.get(reserve, 0))
            deficit += [reserve] * max(0, -lacking)
        if len(deficit) > len(surplus) and self._spec.atomic:
            self._refuse(f"{len(deficit)} workers asked for, {len(surplus)} to be had", targets)
            return []
        return list(zip(surplus, deficit, strict=False))

    def _chosen(
        self, moves: list[tuple[ConfigurationName, ConfigurationName]]
    ) -> list[tuple[Worker, ConfigurationName]]:
        """Pick a rested worker for every move, within the limits; none at all if the plan must be whole and is not."""
        now_s, spec = self._clock.now(), self._spec
        while self._starts_s and self._starts_s[0] <= now_s - HOUR_S:
            self._starts_s.popleft()
        room = len(moves)
        if spec.max_pending_workers is not None:
            pending = sum(w.state in (State.DRAINING, State.LOADING) for w in self._workers.values())
            room = min(room, spec.max_pending_workers - pending)
        if spec.flips_per_hour is not None:
            room = min(room, spec.flips_per_hour - len(self._starts_s))
        rested: dict[ConfigurationName, list[Worker]] = {}
        for w in self._workers.values():
            if w.state is State.ACTIVE and w.changed_s <= now_s - spec.dwell_s:
                rested.setdefault(w.info.configuration, []).append(w)
        for candidates in rested.values():  # the longest rested last, to be popped first
            candidates.sort(key=lambda w: (-w.changed_s, -w.id))
        chosen = []
        for source, target in moves[: max(0, room)]:
            if rested.get(source):
                chosen.append((rested[source].pop(), target))
        if spec.atomic and len(chosen) < len(moves):
            self._refuse(f"{len(moves)} flips asked for, {len(chosen)} allowed now", None)
            return []
        self._refused = None
        return chosen

    def _refuse(self, why: str, targets: Mapping[ConfigurationName, int] | None) -> None:
        self.refused += 1
        if why != self._refused:  # recorded once, not at every tick
            self._refused = why
            more = {} if targets is None else {"targets": dict(targets)}
            self._recorder.event("reconfigure_refused", self._clock.now(), why=why, **more)

    # ------------------------------------------------ a flip
    def _begin(self, worker: Worker, target: ConfigurationName) -> None:
        worker.target = target
        self._starts_s.append(self._clock.now())
        self.flips += 1
        self.flaps += target == worker.came_from
        self._head(worker.info.configuration, -1)
        self._head(target, 1)
        self._note(worker, "draining")
        self._spawn(self._flip(worker, target))

    def _head(self, name: ConfigurationName, sign: int) -> None:
        if name != self._spec.reserve:
            self.reversals += self._heading.get(name, sign) != sign
            self._heading[name] = sign

    async def _flip(self, worker: Worker, target: ConfigurationName) -> None:
        """Drain, load, activate; from after the other ticks of this instant on, which still count on the worker."""
        source, epoch, began_s = worker.info.configuration, worker.info.epoch, self._clock.now()
        if not worker.active:  # lost at this very instant
            return
        self._registry.drain(worker)
        self._empty(worker)
        await worker.emptied()
        self.drain_s += self._clock.now() - began_s
        if worker.absent or worker.info.epoch != epoch:  # lost, and perhaps back since
            return
        self._registry.load(worker)
        serves = await self._loads(worker, target, self._spec.attempts)
        if not serves and not worker.absent:  # back to what it was
            self.rolled_back += 1
            worker.target = source
            self._note(worker, "rolled_back")
            serves = await self._loads(worker, source, 1 + self._spec.attempts)
        if not serves:
            if not worker.absent:
                worker.lose()
            self._note(worker, "lost")
            return
        self.dead_s += worker.changed_s - began_s
        self._note(worker, "active")

    async def _loads(self, worker: Worker, target: ConfigurationName, attempts: int) -> bool:
        """Load a configuration, trying again when a load fails; False: lost, or out of attempts."""
        for _ in range(attempts):
            self._note(worker, "loading")
            try:
                await self._plant.reconfigure(worker.id, target)
            except WorkerLost:
                if not worker.absent:
                    worker.lose()
                return False
            except SteadyflowError as error:
                self._note(worker, "failed", why=str(error))
            else:
                return worker.active
        return False

    def _note(self, worker: Worker, state: str, **more: object) -> None:
        self._recorder.event(
            "reconfigure",
            self._clock.now(),
            worker=worker.id,
            configuration=worker.info.configuration,
            target=worker.target,
            state=state,
            **more,
        )
