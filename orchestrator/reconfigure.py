"""Moving workers between prepared configurations: ACTIVE -> DRAINING -> LOADING -> ACTIVE, or back when a step fails.

The capacity loop says how many workers each configuration should have; this room picks which, drains them, has the
plant load and warm them, and puts them to work in a new epoch. What it holds back, whatever the law says:

    dwell        a worker that changed less than `dwell_s` ago stays
    flap budget  no more than `flips_per_hour` starts in any hour
    pending      no more than `max_pending_workers` under way at once
    drain        its turns end where they are, move to other workers, or are filled again (`handover`)
    whole        a command that cannot begin whole, within the workers that exist, does not begin (`atomic`)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.clock import Clock
from orchestrator.errors import SteadyflowError, WorkerLost
from orchestrator.messages import CapacityCommand
from orchestrator.ports import Plant, WorkerInfo
from orchestrator.recorder import Recorder
from orchestrator.turn import ConfigurationName, WorkerId
from orchestrator.worker_drainer import Drain

HOUR_S = 3600.0


class State(StrEnum):
    """Where a worker is on its way from one configuration to another."""

    ACTIVE = "active"
    DRAINING = "draining"
    LOADING = "loading"
    LOST = "lost"


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


class ManagedWorker:
    """One worker's place in the plan."""

    __slots__ = ("came_from", "info", "since_s", "state", "target")

    def __init__(self, info: WorkerInfo, now_s: float) -> None:
        self.info = info
        self.state = State.ACTIVE
        self.since_s = now_s
        self.target = info.configuration
        self.came_from: ConfigurationName | None = None


class WorkerLifecycle:
    """Every worker, and the flips under way.

    Parameters
    ----------
    clock : Clock
    plant : Plant
    recorder : Recorder
    spec : ReconfigureSpec
    drain : callable
        `drain(info)` stops giving the worker turns and returns an awaitable that ends when it has none.
    join : callable
        `join(info)` puts an active worker to work.
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
        drain: Callable[[WorkerInfo], object],
        join: Callable[[WorkerInfo], None],
        spawn: Callable[..., object],
    ) -> None:
        self._clock, self._plant, self._recorder, self._spec = clock, plant, recorder, spec
        self._drain, self._join, self._spawn = drain, join, spawn
        self.members: dict[WorkerId, ManagedWorker] = {}
        self.flips = self.refused = self.rolled_back = self.flaps = self.reversals = 0
        self.drain_s = self.dead_s = 0.0
        self._starts_s: deque[float] = deque()
        self._refused: str | None = None
        self._heading: dict[ConfigurationName, int] = {}

    def joined(self, info: WorkerInfo) -> None:
        """Take in a worker that the plant reports as joined; a flip of ours announces itself, and is not news."""
        member = self.members.get(info.worker)
        if member is not None and (member.state is State.LOADING or member.info.epoch == info.epoch):
            return
        self.members[info.worker] = ManagedWorker(info, -float("inf"))
        self._join(info)

    def lost(self, worker: WorkerId) -> None:
        """Strike a worker that the plant reports as lost."""
        member = self.members.get(worker)
        if member is not None:
            member.state = State.LOST

    def counts(self) -> Mapping[ConfigurationName, int]:
        """Return workers per configuration, each counted where it is going."""
        found: dict[ConfigurationName, int] = {}
        for member in self.members.values():
            if member.state is not State.LOST:
                found[member.target] = found.get(member.target, 0) + 1
        return found

    # ------------------------------------------------ a command
    def apply(self, command: CapacityCommand) -> CapacityCommand:
        """Start the flips that bring the counts to the targets, surplus to deficit; return what will be so."""
        if command.target_workers is not None:
            moves = self._moves(command.target_workers)
            chosen = self._chosen(moves) if moves else []
            for member, target in chosen:
                self._begin(member, target)
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
    ) -> list[tuple[ManagedWorker, ConfigurationName]]:
        """Pick a rested worker for every move, within the limits; none at all if the plan must be whole and is not."""
        now_s, spec = self._clock.now(), self._spec
        while self._starts_s and self._starts_s[0] <= now_s - HOUR_S:
            self._starts_s.popleft()
        room = len(moves)
        if spec.max_pending_workers is not None:
            pending = sum(m.state in (State.DRAINING, State.LOADING) for m in self.members.values())
            room = min(room, spec.max_pending_workers - pending)
        if spec.flips_per_hour is not None:
            room = min(room, spec.flips_per_hour - len(self._starts_s))
        rested: dict[ConfigurationName, list[ManagedWorker]] = {}
        for m in self.members.values():
            if m.state is State.ACTIVE and m.since_s <= now_s - spec.dwell_s:
                rested.setdefault(m.info.configuration, []).append(m)
        for members in rested.values():  # the longest rested last, to be popped first
            members.sort(key=lambda m: (-m.since_s, -m.info.worker))
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
        if why != self._refused:  # said once, not at every tick
            self._refused = why
            more = {} if targets is None else {"targets": dict(targets)}
            self._recorder.event("reconfigure_refused", self._clock.now(), why=why, **more)

    # ------------------------------------------------ a flip
    def _begin(self, member: ManagedWorker, target: ConfigurationName) -> None:
        member.state, member.target, member.since_s = State.DRAINING, target, self._clock.now()
        self._starts_s.append(member.since_s)
        self.flips += 1
        self.flaps += target == member.came_from
        self._head(member.info.configuration, -1)
        self._head(target, 1)
        self._note(member, "draining")
        self._spawn(self._flip(member, target))

    def _head(self, name: ConfigurationName, sign: int) -> None:
        if name != self._spec.reserve:
            self.reversals += self._heading.get(name, sign) != sign
            self._heading[name] = sign

    async def _flip(self, member: ManagedWorker, target: ConfigurationName) -> None:
        source, began_s = member.info.configuration, self._clock.now()
        await self._drain(member.info)  # type: ignore[misc]  # an awaitable of the pool's
        self.drain_s += self._clock.now() - began_s
        if member.state is State.LOST:
            return
        member.state = State.LOADING
        info = await self._loaded(member, target, self._spec.attempts)
        if info is None and member.state is not State.LOST:  # back to what it was
            self.rolled_back += 1
            member.target = source
            self._note(member, "rolled_back")
            info = await self._loaded(member, source, 1 + self._spec.attempts)
        if info is None:
            member.state = State.LOST
            self._note(member, "lost")
            return
        member.state, member.since_s = State.ACTIVE, self._clock.now()
        member.info, member.came_from = info, source
        self.dead_s += member.since_s - began_s
        self._note(member, "active")
        self._join(info)

    async def _loaded(self, member: ManagedWorker, target: ConfigurationName, attempts: int) -> WorkerInfo | None:
        """Load a configuration, trying again when a load fails; None: lost, or out of attempts."""
        for _ in range(attempts):
            self._note(member, "loading")
            try:
                ready = await self._plant.reconfigure(member.info.worker, target)
            except WorkerLost:
                member.state = State.LOST
                return None
            except SteadyflowError as error:
                self._note(member, "failed", why=str(error))
            else:
                return ready.info
        return None

    def _note(self, member: ManagedWorker, state: str, **more: object) -> None:
        info = member.info
        self._recorder.event(
            "reconfigure",
            self._clock.now(),
            worker=info.worker,
            configuration=info.configuration,
            target=member.target,
            state=state,
            **more,
        )
