"""Real engines as a plant: a fill is a request until its first content byte, a decode the rest of its stream.

An engine is one aggregated worker: a turn has its slot from the request to the end of the answer. What fails before
the first byte fails with `WorkerLost`, so that the orchestrator tries elsewhere; what fails later is given up, as the
client has seen a part. An engine that cannot be reached is announced as lost, probed, and announced again when it
answers.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.clock import Clock
from orchestrator.errors import SteadyflowError, WorkerLost
from orchestrator.messages import BatchCommand, PlantReading, PoolReading, RetentionCommand, Role
from orchestrator.ports import Applied, Filled, PlantFact, Retired, Staged, WorkerInfo
from orchestrator.turn import ConfigurationName, KvChain, KvRef, TurnId, TurnView, WorkerId
from plant.engines.events import Usage
from plant.engines.exchange import Exchange
from plant.engines.upstream import Upstream
from plant.engines.work import Engine, EngineSpec, Work
from plant.pending_work import PendingWork, failed_future

ENGINE = ConfigurationName("engine")
MISSES = 2  # probes in a row: a busy engine may be late once
BROKEN = "stream_broken"  # the answer ended without its final message
REFUSED = "engine_refused"  # the engine answered with an error of its own, which the client gets as it is


class EnginesPlant:
    """Engines behind the `Plant` port.

    Parameters
    ----------
    clock : Clock
    engines : sequence of EngineSpec
    exchanges : mapping of TurnId to Exchange
        The requests of the turns under way.
    give_up : callable
        Ends a turn in the named bucket: the client has seen a part of the answer, or the engine's own refusal.
    counted : callable
        Hears the usage of each answer that ended.
    """

    def __init__(
        self,
        clock: Clock,
        engines: Sequence[EngineSpec],
        exchanges: Mapping[TurnId, Exchange],
        give_up: Callable[[TurnId, str], object],
        counted: Callable[[TurnId, Usage], None],
    ) -> None:
        self._heard: Callable[[], None] = lambda: None
        self._clock, self._exchanges, self._give_up, self._counted = clock, exchanges, give_up, counted
        self._engines = [Engine(WorkerId(k), spec, Upstream(spec.upstream)) for k, spec in enumerate(engines)]
        self._facts = [self._fact("joined", engine) for engine in self._engines]
        self._work = PendingWork()
        self._probes: list[asyncio.Task[None]] = []

    # ------------------------------------------------ life
    def start(self) -> None:
        """Begin to probe the engines."""
        self._probes = [asyncio.ensure_future(self._probe(engine)) for engine in self._engines]

    async def close(self) -> None:
        """Drop every request and stop probing."""
        tasks = [*self._probes, *(w.task for e in self._engines for w in e.work.values() if w.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for engine in self._engines:
            await engine.upstream.close()

    def states(self) -> list[tuple[str, bool, float | None]]:
        """Return of each engine its address, whether it is up, and when its metrics were read."""
        return [(e.spec.upstream.url, e.up, e.upstream.metrics_at_s) for e in self._engines]

    async def _probe(self, engine: Engine) -> None:
        misses = 0
        while True:
            await asyncio.sleep(engine.spec.upstream.probe_s)
            alive = await engine.upstream.alive()
            misses = 0 if alive else misses + 1
            if alive:
                await engine.upstream.scrape(self._clock.now)
            if alive and not engine.up:
                engine.up = True
                engine.epoch += 1
                self._facts.append(self._fact("joined", engine))
                self._heard()
            elif misses >= MISSES and engine.up:
                self._lost(engine, "it does not answer its probe")

    def _lost(self, engine: Engine, why: str) -> None:
        """Announce an engine as gone: what has no byte yet is tried elsewhere, what has is given up."""
        if not engine.up:
            return
        engine.up = False
        self._facts.append(self._fact("lost", engine, why))
        for work in list(engine.work.values()):
            if work.task is not None:
                work.task.cancel()
            self._failed(work, why)
        self._heard()

    def _fact(self, kind: Any, engine: Engine, why: str = "") -> PlantFact:  # Any: one of the fact's literals
        spec = engine.spec
        info = WorkerInfo(engine.worker, 0, ENGINE, Role.AGGREGATED, spec.slots, 0, engine.epoch)
        return PlantFact(kind, self._clock.now(), info, f"{spec.upstream.url} {why}".strip())

    # ------------------------------------------------ a turn
    def fill(self, worker: WorkerId, turn: TurnView, prefix: KvRef) -> Future[Filled]:
        """Send the request; the first content byte ends the fill."""
        engine = self._engines[worker]
        if not engine.up:
            return failed_future(self._clock, WorkerLost(f"{engine.spec.upstream.url} is down"))
        work = Work(engine, turn, self._exchanges[turn.turn_id], self._clock.now(), self._leave)
        work.fill = future = self._clock.loop.create_future()
        self._work[future] = work
        engine.work[turn.turn_id] = work
        work.task = asyncio.ensure_future(self._exchange(work))
        return future

    def stage(self, worker: WorkerId, kv: KvRef) -> Future[Staged]:
        """Refuse: an engine decodes where it fills."""
        raise SteadyflowError("an engine's state stays where it is")

    def decode(self, worker: WorkerId, turn: TurnView, kv: Staged) -> Future[Retired]:
        """Wait for the end of the answer."""
        future: Future[Retired] = self._clock.loop.create_future()
        work = self._engines[worker].work.get(turn.turn_id)
        if work is None:  # it was given up at this very instant
            future.cancel()
            return future
        work.joined_s = self._clock.now()
        work.decode = future
        self._work[future] = work
        if work.retired is not None:
            self._retire(work)
        return future

    async def _exchange(self, work: Work) -> None:
        engine, exchange = work.engine, work.exchange
        try:
            outcome = await engine.upstream.pass_on(exchange, lambda: self._filled(work))
        except OSError as error:  # `Upstream` raises this alone
            if work.filled or exchange.status:
                self._failed(work, str(error))
            else:
                self._lost(engine, str(error))
            return
        if outcome.refused:
            self._abandon(work, REFUSED)
        elif outcome.usage is None:
            self._abandon(work, BROKEN)
        else:
            self._counted(work.turn.turn_id, outcome.usage)
            tokens = max(1, outcome.usage.output_tokens)
            engine.served += 1
            engine.tokens += tokens
            work.retired = Retired(work.joined_s or self._clock.now(), tokens, KvRef(work.turn.context, 0, None))
            self._filled(work)
            self._retire(work)

    def _filled(self, work: Work) -> None:
        if work.filled:
            return
        work.filled = True
        future, work.fill = work.fill, None
        if future is not None:
            self._work.pop(future, None)
            kv = KvRef(work.turn.context, work.turn.prompt_tokens, work.engine.worker)
            future.set_result(Filled(kv, work.started_s, 0))

    def _retire(self, work: Work) -> None:
        future, retired = work.decode, work.retired
        if future is not None and retired is not None:
            work.decode = None
            self._work.pop(future, None)
            self._leave(work)
            future.set_result(retired._replace(joined_s=work.joined_s))

    def _failed(self, work: Work, why: str) -> None:
        """End a request that failed: elsewhere if nothing was seen of it, else given up."""
        if work.filled or work.exchange.status:
            self._abandon(work, BROKEN)
            return
        future, work.fill = work.fill, None
        self._leave(work)
        if future is not None:
            self._work.pop(future, None)
            future.set_exception(WorkerLost(why))

    def _abandon(self, work: Work, bucket: str) -> None:
        self._give_up(work.turn.turn_id, bucket)
        work.exchange.wake()

    def _leave(self, work: Work) -> None:
        """Forget a request, and drop it if it is still under way."""
        if work.engine.work.get(work.turn.turn_id) is work:
            del work.engine.work[work.turn.turn_id]
        task = work.task
        if task is not None and not task.done() and task is not asyncio.current_task():
            task.cancel()

    def withdraw(self, future: Future[Any]) -> bool:
        """Drop the request behind a Future."""
        return self._work.withdraw(future)

    def evict(self, worker: WorkerId, turn_id: TurnId | None) -> None:
        """Drop a turn's request; no worker of this plant changes, so no other is ever sent away."""
        work = None if turn_id is None else self._engines[worker].work.get(turn_id)
        if work is not None:
            work.withdraw()

    # ------------------------------------------------ what else the port asks
    def has_room(self, worker: WorkerId, turn: TurnView) -> bool:
        """An engine looks after its own memory."""
        return True

    def fits(self, turn: TurnView) -> bool:
        """Which prompt is too long, the engine says."""
        return True

    def cached_tokens(self, turn: TurnView) -> int:
        """Not known before the answer."""
        return 0

    def holding(self, prefix: KvChain) -> Sequence[tuple[WorkerId, int]]:
        """Not known."""
        return ()

    def cost_s(self, worker: WorkerId, turn: TurnView) -> float | None:
        """Not modelled."""
        return None

    def reconfigure(self, worker: WorkerId, to: ConfigurationName) -> Future[None]:
        """Refuse: nobody here starts or stops engines."""
        raise SteadyflowError("an engine has no other configuration to change to")

    def apply(self, command: BatchCommand | RetentionCommand) -> Applied:
        """Set nothing: an engine's batch is its own."""
        return Applied(type(command)(), True, {})

    def facts(self) -> Iterator[PlantFact]:
        """Yield, once each, which engines came and went."""
        facts, self._facts = self._facts, []
        return iter(facts)

    def listen(self, heard: Callable[[], None]) -> None:
        """Call `heard` when an engine has come or gone."""
        self._heard = heard

    def read(self) -> PlantReading:
        """Return the gateway's own counters of the engines that are up."""
        up = [engine for engine in self._engines if engine.up]
        steps = [engine.upstream.kv_used_ratio() for engine in up]
        known = [ratio for ratio in steps if ratio is not None]
        pool = PoolReading(
            configuration=ENGINE,
            role=Role.AGGREGATED,
            active_workers=len(up),
            pending_workers=len(self._engines) - len(up),
            draining_workers=0,
            slots=sum(engine.spec.slots for engine in up),
            busy_slots=sum(len(engine.work) for engine in up),
            queued_turns=0,
            queued_tokens=0,
            served_total=sum(engine.served for engine in self._engines),
            tokens_total=sum(engine.tokens for engine in self._engines),
            preempted_total=0,
            kv_used_tokens=None if not known else round(1000 * sum(known) / len(known)),
            kv_capacity_tokens=1000 if known else None,
            step_s=None,
            service_per_worker_per_s=None,
        )
        return PlantReading(at_s=self._clock.now(), pools={ENGINE: pool})
