"""Moving workers between prepared configurations: ACTIVE -> DRAINING -> LOADING -> WARMING -> ACTIVE.

The capacity loop says how many workers each configuration should have; this room picks which, drains them, has the
plant load and warm them, and puts them to work in a new epoch. A worker that changed less than `dwell_s` ago stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.clock import Clock
from orchestrator.errors import SteadyflowError, WorkerLost
from orchestrator.ports import Plant, WorkerInfo
from orchestrator.recorder import Recorder
from orchestrator.signals import CapacityCommand
from orchestrator.turn import ConfigurationName, WorkerId


class State(StrEnum):
    """Where a worker is on its way from one configuration to another."""

    ACTIVE = "active"
    DRAINING = "draining"
    LOADING = "loading"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconfigureSpec:
    """Limits on flips: the least time between two of one worker, and how many may be under way at once (None: any)."""

    dwell_s: float = 0.0
    max_pending_workers: int | None = None


class Member:
    """One worker's place in the plan."""

    __slots__ = ("info", "since_s", "state", "target")

    def __init__(self, info: WorkerInfo, now_s: float) -> None:
        self.info = info
        self.state = State.ACTIVE
        self.since_s = now_s
        self.target = info.configuration


class Roster:
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
        self.members: dict[WorkerId, Member] = {}
        self.flips = 0
        self.refused = 0

    def joined(self, info: WorkerInfo) -> None:
        """Take in a worker that the plant reports as joined."""
        self.members[info.worker] = Member(info, -float("inf"))
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

    def apply(self, command: CapacityCommand) -> CapacityCommand:
        """Start the flips that bring the counts to the targets, surplus to deficit; return what will be so.

        All or nothing within what exists: a configuration gains only what another gives up.
        """
        targets = command.target_workers
        if targets is None:
            return CapacityCommand(target_workers=dict(self.counts()))
        counts = dict(self.counts())
        surplus = [name for name, n in counts.items() for _ in range(max(0, n - targets.get(name, n)))]
        deficit = [name for name, n in targets.items() for _ in range(max(0, n - counts.get(name, 0)))]
        for source, target in zip(surplus, deficit, strict=False):
            member = self._candidate(source)
            if member is None:
                self.refused += 1
                continue
            self._begin(member, target)
        return CapacityCommand(
            target_workers=dict(self.counts()), in_flight_setpoint_turns=command.in_flight_setpoint_turns
        )

    def _candidate(self, configuration: ConfigurationName) -> Member | None:
        """Return the active worker of this configuration that has rested longest beyond its dwell."""
        pending = sum(m.state in (State.DRAINING, State.LOADING) for m in self.members.values())
        if self._spec.max_pending_workers is not None and pending >= self._spec.max_pending_workers:
            return None
        latest_s = self._clock.now() - self._spec.dwell_s
        rested = [
            m
            for m in self.members.values()
            if m.state is State.ACTIVE and m.info.configuration == configuration and m.since_s <= latest_s
        ]
        return min(rested, key=lambda m: (m.since_s, m.info.worker), default=None)

    def _begin(self, member: Member, target: ConfigurationName) -> None:
        member.state, member.target, member.since_s = State.DRAINING, target, self._clock.now()
        self.flips += 1
        self._note(member, "draining")
        self._spawn(self._flip(member, target))

    async def _flip(self, member: Member, target: ConfigurationName) -> None:
        source = member.info.configuration
        await self._drain(member.info)  # type: ignore[misc]  # an awaitable of the pool's
        if member.state is State.LOST:
            return
        member.state = State.LOADING
        self._note(member, "loading")
        try:
            ready = await self._plant.reconfigure(member.info.worker, target)
        except WorkerLost:
            member.state = State.LOST
            self._note(member, "lost")
            return
        except SteadyflowError as error:  # the step failed: the worker goes back to what it was
            member.target = source
            self._note(member, "rolled_back", why=str(error))
            ready = await self._plant.reconfigure(member.info.worker, source)
        member.state, member.since_s = State.ACTIVE, self._clock.now()
        member.info = ready.info
        self._note(member, "active")
        self._join(ready.info)

    def _note(self, member: Member, state: str, **more: object) -> None:
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
