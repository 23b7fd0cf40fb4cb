"""Telemetry of the controllers: samples of ledger and plant, as old, noisy and patchy as the scenario says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

from orchestrator.clock import SLEEP, Clock
from orchestrator.ledger import DECODING, FILLING, READY, WAITING, Ledger
from orchestrator.messages import PlantReading, PoolReading, Role
from orchestrator.rng import uniform
from orchestrator.turn import ConfigurationName, new

_NORMAL = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryFaultSpec:
    """A span in which samples freeze, come again with a fresh stamp, or show workers of one pool as empty.

    `share` of a pool's workers report that they hold nothing.
    """

    kind: Literal["frozen", "repeated", "empty"]
    at_s: float
    until_s: float
    configuration: ConfigurationName | None = None
    share: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySpec:
    """How readings reach the controllers.

    `period_s` 0: live, sampled at each tick. A reading at t shows the newest sample taken at or before t - `age_s`.
    `noise_ratio`: standard deviation of a factor on every level. `drop_ratio`: share of samples that are lost.
    `ledger` "fresh": all this befalls the plant's readings alone (busy slots, slots, pools, tiers), while what the
    orchestrator counts itself is as it stands at the tick.
    """

    period_s: float = 0.0
    age_s: float = 0.0
    noise_ratio: float = 0.0
    drop_ratio: float = 0.0
    ledger: Literal["aged", "fresh"] = "aged"
    faults: tuple[TelemetryFaultSpec, ...] = ()


class ClassSample(NamedTuple):
    """Counts of one class at the sample."""

    backlog: int
    in_flight: int
    arrived: int
    retired: int


class Sample(NamedTuple):
    """The state of ledger and plant at `at_s`: levels, and counters since the start.

    `busy` is `decoding` as the plant's readings show it; it is older where only these are aged.
    """

    at_s: float
    backlog: int
    filling: int
    ready: int
    decoding: int
    in_flight: int
    busy: int
    slots: int
    arrived: int
    released: int
    retired: int
    preempted: int
    prompt_tokens: int
    ttft_sum_s: float
    ttft_count: int
    tpot_sum_s: float
    tpot_count: int
    oldest_s: float | None
    classes: tuple[ClassSample, ...]
    plant: PlantReading


def with_lines(plant: PlantReading, lines: Sequence[tuple[Sized, tuple[Role, ...]]]) -> PlantReading:
    """Count the turns in line for a worker among the queued turns of the pool that they wait for.

    `lines`: each with the roles that serve it. Where several configurations do, the one with the most workers has it.
    """
    if not any(len(line) for line, _ in lines):
        return plant
    pools = dict(plant.pools)
    for line, roles in lines:
        serving = [pool for pool in pools.values() if pool.role in roles]
        if len(line) and serving:
            pool = max(serving, key=lambda pool: pool.active_workers)
            pools[pool.configuration] = pool._replace(queued_turns=pool.queued_turns + len(line))
    return plant._replace(pools=pools)


def emptied(sample: Sample, fault: TelemetryFaultSpec) -> Sample:
    """Return a sample in which a share of one pool's workers report that they hold nothing."""
    pool = None if fault.configuration is None else sample.plant.pools.get(fault.configuration)
    if pool is None:
        return sample
    rest = 1.0 - fault.share
    used = pool.kv_used_tokens
    reported = pool._replace(
        busy_slots=round(pool.busy_slots * rest),
        queued_turns=round(pool.queued_turns * rest),
        queued_tokens=round(pool.queued_tokens * rest),
        kv_used_tokens=None if used is None else round(used * rest),
    )
    return sample._replace(plant=sample.plant._replace(pools={**sample.plant.pools, pool.configuration: reported}))


def take_sample(now_s: float, ledger: Ledger, slots: int, oldest_s: float | None, plant: PlantReading) -> Sample:
    """Read every counter as it stands."""
    levels = ledger.levels
    return new(
        Sample,
        (
            now_s,
            int(levels[WAITING].value),
            int(levels[FILLING].value),
            int(levels[READY].value),
            int(levels[DECODING].value),
            int(ledger.in_flight.value),
            int(levels[DECODING].value),
            slots,
            ledger.arrived,
            ledger.released,
            ledger.retired,
            ledger.preempted,
            ledger.prompt_tokens,
            ledger.ttft_sum_s,
            ledger.ttft_count,
            ledger.tpot_sum_s,
            ledger.tpot_count,
            oldest_s,
            tuple([new(ClassSample, (c.backlog, c.in_flight, c.arrived, c.retired)) for c in ledger.classes]),
            plant,
        ),
    )


class Telemetry:
    """Hand out samples by the spec.

    Parameters
    ----------
    clock : Clock
    spec : TelemetrySpec
    take : callable
        Takes a sample now.
    stream : int
        Key of the random stream for noise and losses.
    """

    def __init__(self, clock: Clock, spec: TelemetrySpec, take: Callable[[], Sample], stream: int) -> None:
        self._clock, self._spec, self._take, self._stream = clock, spec, take, stream
        self._history: deque[Sample] = deque()
        self._taken = 0
        self._stuck: Sample | None = None  # the last sample before one that froze or came again
        self.dropped = 0

    def start(self) -> None:
        """Take the first sample, and keep sampling where the spec says so."""
        self._history.append(self._fresh())
        if self._spec.period_s > 0.0:
            self._clock.at(self._spec.period_s, self._sample, 1, SLEEP)

    def _sample(self, k: int) -> None:
        # Sampled among the sleeps: after every fact of the instant, before the ticks that read it.
        drop_ratio = self._spec.drop_ratio
        if drop_ratio > 0.0 and uniform(self._stream, k, 0) < drop_ratio:
            self.dropped += 1
        else:
            self._history.append(self._fresh())
        self._clock.at((k + 1) * self._spec.period_s, self._sample, k + 1, SLEEP)

    def latest(self) -> Sample:
        """Return the newest sample that is old enough to have arrived, with the ledger's own part fresh if so set."""
        arrived = self._arrived()
        if self._spec.ledger == "aged":
            return arrived
        return self._take()._replace(busy=arrived.busy, slots=arrived.slots, plant=arrived.plant)

    def _arrived(self) -> Sample:
        if self._spec.period_s <= 0.0:
            return self._fresh()
        history = self._history
        # A millionth of a period on top: k * period less the age may miss its sample's instant by a bit.
        limit_s = self._clock.now() - self._spec.age_s + 1e-6 * self._spec.period_s
        while len(history) > 1 and history[1].at_s <= limit_s:
            history.popleft()
        return history[0]

    def _fresh(self) -> Sample:
        """Take a sample, as noise and the faults of the instant leave it."""
        now_s = self._clock.now()
        active = [fault for fault in self._spec.faults if fault.at_s <= now_s < fault.until_s]
        if self._stuck is not None and any(fault.kind in ("frozen", "repeated") for fault in active):
            if all(fault.kind != "frozen" for fault in active):
                self._stuck = self._stuck._replace(at_s=now_s)
            return self._stuck
        sample = self._noisy(self._take())
        for fault in active:
            if fault.kind == "empty":
                sample = emptied(sample, fault)
        self._stuck = sample
        return sample

    def _noisy(self, sample: Sample) -> Sample:
        if self._spec.noise_ratio <= 0.0:
            return sample
        self._taken += 1
        draws = iter(range(1, 1_000_000))

        def shaken(value: int) -> int:
            z = _NORMAL.inv_cdf(uniform(self._stream, self._taken, next(draws)))
            return max(0, round(value * (1.0 + self._spec.noise_ratio * z)))

        def shaken_pool(pool: PoolReading) -> PoolReading:
            used = pool.kv_used_tokens
            return pool._replace(
                busy_slots=shaken(pool.busy_slots),
                queued_turns=shaken(pool.queued_turns),
                queued_tokens=shaken(pool.queued_tokens),
                kv_used_tokens=None if used is None else shaken(used),
            )

        return sample._replace(
            backlog=shaken(sample.backlog),
            filling=shaken(sample.filling),
            ready=shaken(sample.ready),
            decoding=(decoding := shaken(sample.decoding)),
            busy=decoding,
            in_flight=shaken(sample.in_flight),
            plant=sample.plant._replace(pools={name: shaken_pool(p) for name, p in sample.plant.pools.items()}),
        )
