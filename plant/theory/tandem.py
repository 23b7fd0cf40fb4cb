"""The tandem plant of control theory: a dead time of unlimited width, then N slots.

    fill   : a dead time of exactly L seconds, however many turns are in it
    decode : N slots, each held for a residence time of mean T drawn by law; a full pool retires N / T turns a second

There is no memory, no link and no batching: an oscillation here is caused by the control loop.
"""

from __future__ import annotations

import math
from asyncio import Future
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from scipy import special

from orchestrator.clock import Clock
from orchestrator.errors import SteadyflowError
from orchestrator.messages import BatchCommand, PlantReading, PoolReading, RetentionCommand, Role
from orchestrator.ports import Applied, Filled, PlantFact, Retired, Staged, WorkerInfo
from orchestrator.turn import ConfigurationName, KvChain, KvRef, TurnId, TurnView, WorkerId, new
from plant.hidden_turns import HiddenTurns

FILL, DECODE = WorkerId(0), WorkerId(1)
FILL_NAME, DECODE_NAME = ConfigurationName("fill"), ConfigurationName("decode")


@dataclass(frozen=True, slots=True, kw_only=True)
class Residence:
    """How long a turn holds its slot: mean `mean_s`, and a shape.

    `erlang` has `stages` stages (cv = 1/sqrt(stages)); `lognormal` has coefficient of variation `cv_ratio`.
    """

    mean_s: float
    shape: Literal["exponential", "erlang", "lognormal", "fixed"] = "exponential"
    stages: int = 1
    cv_ratio: float = 1.0

    def seconds(self, u: float) -> float:
        """Return the quantile of the law at `u` in (0, 1)."""
        if self.shape == "exponential":
            return -self.mean_s * math.log1p(-u)
        if self.shape == "fixed":
            return self.mean_s
        if self.shape == "erlang":
            return self.mean_s / self.stages * float(special.gammaincinv(self.stages, u))
        sigma2 = math.log1p(self.cv_ratio**2)
        return self.mean_s * math.exp(math.sqrt(sigma2) * float(special.ndtri(u)) - 0.5 * sigma2)


class Tandem:
    """The two-stage plant behind the `Plant` port.

    Parameters
    ----------
    clock : Clock
    hidden_turns : HiddenTurns
        Output lengths and draws; `draws[0]` is the uniform of the residence time.
    slots : int
        N, >= 1.
    dead_time_s : float
        L, >= 0.
    residence : Residence
    """

    def __init__(
        self, clock: Clock, hidden_turns: HiddenTurns, *, slots: int, dead_time_s: float, residence: Residence
    ) -> None:
        self._clock, self._loop, self._hidden_turns = clock, clock.loop, hidden_turns
        # Bound once: a bound method for each turn would take memory for as long as the turn does.
        self._on_filled, self._on_retired = self._fill_ends, self._decode_ends
        # By Future: the event at its end, and its result. Any: the type of an event is private to the clock.
        self._fills: dict[Future[Filled], tuple[Any, Filled]] = {}
        self._decodes: dict[Future[Retired], tuple[Any, Retired]] = {}
        self.slots, self.dead_time_s, self.residence = slots, dead_time_s, residence
        self._filled_total = self._retired_total = self._output_tokens = 0
        self._reported = False

    # ------------------------------------------------ the three stages
    def fill(self, worker: WorkerId, turn: TurnView, prefix: KvRef) -> Future[Filled]:
        """Pass the delay line."""
        future: Future[Filled] = Future(loop=self._loop)
        now_s = self._clock.now()
        entry = self._clock.at(now_s + self.dead_time_s, self._on_filled, future)
        self._fills[future] = entry, new(Filled, (prefix, now_s, 0))
        return future

    def _fill_ends(self, future: Future[Filled]) -> None:
        _, filled = self._fills.pop(future)
        self._filled_total += 1
        future.set_result(filled)

    def stage(self, worker: WorkerId, kv: KvRef) -> Future[Staged]:
        """Staging takes no time here."""
        future: Future[Staged] = Future(loop=self._loop)
        future.set_result(new(Staged, (kv, 0.0)))
        return future

    def decode(self, worker: WorkerId, turn: TurnView, kv: Staged) -> Future[Retired]:
        """Hold a slot for the turn's residence time."""
        future: Future[Retired] = Future(loop=self._loop)
        hidden = self._hidden_turns[turn.turn_id]
        now_s = self._clock.now()
        entry = self._clock.at(now_s + self.residence.seconds(hidden.draws[0]), self._on_retired, future)
        self._decodes[future] = entry, new(Retired, (now_s, hidden.output_tokens, kv.kv))
        return future

    def _decode_ends(self, future: Future[Retired]) -> None:
        _, retired = self._decodes.pop(future)
        self._retired_total += 1
        self._output_tokens += retired[1]
        future.set_result(retired)

    def withdraw(self, future: Future[Any]) -> bool:
        """Stop the work behind a Future now, and cancel it; return whether it was under way."""
        under_way = self._fills.pop(future, None) or self._decodes.pop(future, None)
        if under_way is None:
            return False
        self._clock.cancel_at(under_way[0])
        return future.cancel()

    # ------------------------------------------------ what else the port asks
    def has_room(self, worker: WorkerId, turn: TurnView) -> bool:
        """There is no memory to run out of."""
        return True

    def fits(self, turn: TurnView) -> bool:
        """Every turn fits."""
        return True

    def holding(self, prefix: KvChain) -> Sequence[tuple[WorkerId, int]]:
        """No prefix is kept."""
        return ()

    def cost_s(self, worker: WorkerId, turn: TurnView) -> float | None:
        """Not modelled."""
        return None

    def cached_tokens(self, turn: TurnView) -> int:
        """No prefix is kept."""
        return 0

    def reconfigure(self, worker: WorkerId, to: ConfigurationName) -> Future[None]:
        """Refuse: the two stages are fixed."""
        raise SteadyflowError("the tandem plant has no other configuration to change to")

    def evict(self, worker: WorkerId, turn_id: TurnId | None) -> None:
        """Refuse: there is no other worker of either stage."""
        raise SteadyflowError("the tandem plant has no other worker to send a turn to")

    def apply(self, command: BatchCommand | RetentionCommand) -> Applied:
        """Clip a batch cap to the slots there are; nothing else can be set."""
        if isinstance(command, BatchCommand) and command.batch_cap_turns is not None:
            cap = min(max(1, command.batch_cap_turns), self.slots)
            return Applied(BatchCommand(batch_cap_turns=cap), cap != command.batch_cap_turns, {DECODE_NAME: cap})
        return Applied(command, False, {})

    def facts(self) -> Iterator[PlantFact]:
        """Yield the delay line and the slots as joined, once."""
        if not self._reported:
            self._reported = True
            now_s = self._clock.now()
            delay_line = WorkerInfo(FILL, 0, FILL_NAME, Role.FILL, None, 0, 0)
            pool = WorkerInfo(DECODE, 0, DECODE_NAME, Role.DECODE, self.slots, 0, 0)
            yield PlantFact("joined", now_s, delay_line, "delay line")
            yield PlantFact("joined", now_s, pool, "slots")

    def listen(self, heard: Callable[[], None]) -> None:
        """Nothing to tell: this plant has no later facts."""

    def read(self) -> PlantReading:
        """Return the counters of both stages."""
        return PlantReading(
            at_s=self._clock.now(),
            pools={
                FILL_NAME: _pool(FILL_NAME, Role.FILL, 0, len(self._fills), self._filled_total, 0),
                DECODE_NAME: _pool(
                    DECODE_NAME,
                    Role.DECODE,
                    self.slots,
                    len(self._decodes),
                    self._retired_total,
                    self._output_tokens,
                ),
            },
        )


def _pool(name: ConfigurationName, role: Role, slots: int, busy: int, served: int, tokens: int) -> PoolReading:
    # A real pool does not know what it would serve when full: its law is told so by the scenario, rightly or wrongly.
    return PoolReading(
        configuration=name,
        role=role,
        active_workers=1,
        pending_workers=0,
        draining_workers=0,
        slots=slots,
        busy_slots=busy,
        queued_turns=0,
        queued_tokens=0,
        served_total=served,
        tokens_total=tokens,
        preempted_total=0,
        kv_used_tokens=None,
        kv_capacity_tokens=None,
        step_s=None,
        service_per_worker_per_s=None,
    )
