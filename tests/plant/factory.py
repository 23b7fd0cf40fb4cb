"""Small clusters and turns for tests."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any

from orchestrator.clock import Clock
from orchestrator.messages import Role
from orchestrator.turn import EMPTY_CHAIN, ClassName, ConfigurationName, KvChain, KvRef, TurnId, TurnView, WorkerId
from plant.cluster import Cluster
from plant.cluster_spec import ConfigurationSpec, PoolSpec, RackSpec
from plant.hidden_turns import HiddenTurn, HiddenTurns
from plant.model.times import LinearTimes

# Awkward numbers on purpose: no step ends where another begins by chance.
TIMES = LinearTimes(
    base_s=6.01e-3, per_sequence_s=6.1e-5, per_kv_token_s=4.3e-8, per_new_token_s=1.07e-5, per_cached_token_s=1.3e-9
)
ANY = KvRef(EMPTY_CHAIN, 0, None)


def configuration(name: str, role: Role, **changes: Any) -> ConfigurationSpec:
    settings: dict[str, Any] = {"times": TIMES, "slots": 1 if role in ("prefill", "midfill", "fill") else 8}
    settings |= changes
    return ConfigurationSpec(name=ConfigurationName(name), role=role, **settings)


FILL = configuration("fill", Role.FILL, chunk_tokens=512, staging_turns=4)
DECODE = configuration("decode", Role.DECODE, slots=8, kv_bytes_per_token=1e5)
BOTH = configuration("both", Role.AGGREGATED, slots=4, chunk_tokens=256)


def cluster(
    clock: Clock,
    hidden: HiddenTurns,
    *parts: tuple[ConfigurationSpec, int],
    racks: Sequence[RackSpec] | None = None,
    **more: Any,
) -> Cluster:
    total = sum(count for _, count in parts)
    return Cluster(
        clock,
        hidden,
        racks=racks or [RackSpec(count=1, workers=total, uplink_bytes_per_s=math.inf)],
        configurations=[spec for spec, _ in parts],
        pools=[PoolSpec(configuration=spec.name, workers=count) for spec, count in parts if count],
        **more,
    )


class Turns:
    """Makes turns with their hidden halves."""

    def __init__(self) -> None:
        self.hidden = HiddenTurns()
        self.count = 0

    def make(
        self,
        prompt: int,
        output: int,
        context: KvChain = EMPTY_CHAIN,
        at_s: float = 0.0,
        service_s: float | None = None,
    ) -> TurnView:
        turn = TurnView(TurnId(self.count), self.count, ClassName("chat"), self.count, 0, at_s, prompt, context)
        self.hidden[turn.turn_id] = HiddenTurn(output, (), service_s)
        self.count += 1
        return turn


W0 = WorkerId(0)


async def fill_and_decode(plant: Cluster, turn: TurnView, filler: WorkerId, decoder: WorkerId) -> tuple[float, float]:
    """Fill, stage and decode one turn; return its first token's and its last token's instants."""
    loop = asyncio.get_running_loop()
    filled = await plant.fill(filler, turn, ANY)
    first = loop.time()
    staged = await plant.stage(decoder, filled.kv)
    await plant.decode(decoder, turn, staged)
    return first, loop.time()
