"""What stands behind a server: a modelled plant whose tokens are made here, or real engines with their own bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from orchestrator.orchestrator import Orchestrator
from orchestrator.ports import Plant
from orchestrator.real_clock import RealClock
from orchestrator.turn import TurnId
from plant.cluster import Cluster
from plant.engines.events import Usage
from plant.engines.exchange import Exchange
from plant.engines.plant import EnginesPlant
from plant.engines.upstream import UpstreamSpec
from plant.engines.work import EngineSpec
from plant.hidden_turns import HiddenTurns
from plant.theory.tandem import Tandem
from scenarios.build import plants
from scenarios.schema.plants import EnginesPlant as EnginesPart
from scenarios.schema.scenario import Scenario
from scenarios.serve.answers import Answers
from scenarios.serve.asks import Ask
from scenarios.serve.figures import Latencies
from scenarios.serve.relay import RelayedAnswers
from scenarios.serve.replies import Reply
from scenarios.serve.source import RequestSource
from scenarios.serve.streams import ClusterSteps, StreamingPlant, TandemSteps


class Backend(Protocol):
    """What serves the turns of a server."""

    @property
    def plant(self) -> Plant:
        """The plant that the orchestrator drives."""
        ...

    @property
    def recorded(self) -> Plant:
        """The plant whose gauges go to the record."""
        ...

    def begin(self, orchestrator: Orchestrator) -> None:
        """Hear of the orchestrator, and begin."""
        ...

    async def close(self) -> None:
        """End; the run is over."""
        ...

    def exchange(self, ask: Ask) -> Exchange | None:
        """Return what is to be sent to an engine; None: nothing is sent anywhere."""
        ...

    def answers(
        self,
        epoch_s: Callable[[], float],
        cancel: Callable[[Reply], None],
        retry_after_s: Callable[[], int],
        latencies: Latencies,
    ) -> Answers:
        """Return what sends the answers."""
        ...

    def totals(self) -> dict[str, float]:
        """Return `prompt_tokens` and `hit_tokens` since the start."""
        ...

    def engines(self) -> Sequence[tuple[str, bool, float | None]]:
        """Return (address, whether it is up, age of its metrics in seconds) of each real engine."""
        ...


class ModelledBackend:
    """A modelled plant."""

    def __init__(
        self, scenario: Scenario, clock: RealClock, hidden: HiddenTurns, seed: int, source: RequestSource
    ) -> None:
        self._clock = clock
        self.recorded = plant = plants.plant(scenario, clock, hidden, seed)
        assert isinstance(plant, Cluster | Tandem)  # `served` refuses every other
        steps = ClusterSteps(plant) if isinstance(plant, Cluster) else TandemSteps(plant, hidden)
        self.plant = StreamingPlant(clock, plant, steps, source.replies)

    def begin(self, orchestrator: Orchestrator) -> None:
        """The plant runs by itself."""

    async def close(self) -> None:
        """The plant ends by itself."""

    def exchange(self, ask: Ask) -> None:
        """Nothing is sent anywhere."""

    def answers(
        self,
        epoch_s: Callable[[], float],
        cancel: Callable[[Reply], None],
        retry_after_s: Callable[[], int],
        latencies: Latencies,
    ) -> Answers:
        """Return what makes and sends the answers."""
        return Answers(self._clock, epoch_s, cancel, retry_after_s, latencies)

    def totals(self) -> dict[str, float]:
        """Return `prompt_tokens` and `hit_tokens` of the fills so far; a tandem plant keeps no prefix."""
        plant = self.recorded
        return plant.totals() if isinstance(plant, Cluster) else {"prompt_tokens": 0.0, "hit_tokens": 0.0}

    def engines(self) -> Sequence[tuple[str, bool, float | None]]:
        """There are none."""
        return ()


class RealBackend:
    """Real engines."""

    def __init__(self, part: EnginesPart, clock: RealClock, source: RequestSource) -> None:
        self._clock = clock
        self._orchestrator: Orchestrator | None = None
        self._sums = {"prompt_tokens": 0.0, "hit_tokens": 0.0}
        specs = [
            EngineSpec(
                upstream=UpstreamSpec(
                    url=engine.url,
                    model=engine.model,
                    metrics=engine.metrics,
                    connect_s=part.connect_s,
                    silence_s=part.silence_s,
                    probe_s=part.probe_s,
                ),
                slots=engine.slots,
            )
            for engine in part.engines
        ]
        self.plant = self.recorded = EnginesPlant(clock, specs, source.exchanges, self._give_up, self._counted)

    def begin(self, orchestrator: Orchestrator) -> None:
        """Begin to probe."""
        self._orchestrator = orchestrator
        self.plant.start()

    async def close(self) -> None:
        """Close every connection."""
        await self.plant.close()

    def exchange(self, ask: Ask) -> Exchange:
        """Return the request as it is sent on."""
        path = "/v1/chat/completions" if ask.chat else "/v1/completions"
        return Exchange(path, ask.given, ask.stream, ask.include_usage)

    def answers(
        self,
        epoch_s: Callable[[], float],
        cancel: Callable[[Reply], None],
        retry_after_s: Callable[[], int],
        latencies: Latencies,
    ) -> Answers:
        """Return what passes the answers on."""
        self._answers = RelayedAnswers(self._clock, epoch_s, cancel, retry_after_s, latencies)
        return self._answers

    def totals(self) -> dict[str, float]:
        """Return `prompt_tokens` and `hit_tokens` as the engines counted them."""
        return self._sums

    def engines(self) -> Sequence[tuple[str, bool, float | None]]:
        """Return the state of each engine."""
        now_s = self._clock.now()
        return [(url, up, None if at_s is None else now_s - at_s) for url, up, at_s in self.plant.states()]

    def _give_up(self, turn_id: TurnId, bucket: str) -> None:
        assert self._orchestrator is not None  # no turn comes before `begin`
        self._orchestrator.cancel(turn_id, bucket)

    def _counted(self, turn_id: TurnId, usage: Usage) -> None:
        assert self._orchestrator is not None
        self._sums["prompt_tokens"] += usage.prompt_tokens
        self._sums["hit_tokens"] += usage.cached_tokens
        self._answers.generated_tokens += usage.output_tokens
        now_s = self._clock.now()
        self._orchestrator.recorder.event("usage", now_s, turn_id=turn_id, **usage._asdict())
