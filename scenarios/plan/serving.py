"""Simulate one aggregated worker under a closed-loop load generator that keeps `concurrency` requests in flight.

Measured first-token times include the wait behind other prompts, and measured token times include their prefill passes;
neither is a property of the layers alone. Prompts go first (SGLang's and vLLM's default order), as many at once
as the chunk allows; between prompts all running requests decode together until one ends.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from plant.model.layer import Setting
from plant.model.regimes import decode, fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The generator: fixed lengths (`spread_ratio` 1) or lengths drawn from [spread x mean, mean]."""

    concurrency: int
    input_tokens: int
    output_tokens: int
    requests: int
    spread_ratio: float = 1.0
    chunk_tokens: int = 8192
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Means over requests."""

    ttft_s: float
    tpot_s: float
    output_tokens_per_s: float


class _Times:
    """Step and fill seconds of one worker, from precomputed arrays."""

    def __init__(self, setting: Setting, load: Load, draft_tokens: int, accepted_tokens: float) -> None:
        place = setting.place
        ranks = place.dp * place.pp
        batch = np.ceil(np.arange(1, load.concurrency + 1) / ranks)
        low = decode(setting, batch, 1024.0, draft_tokens=draft_tokens, accepted_tokens=accepted_tokens).tpot_s
        high = decode(setting, batch, 33_792.0, draft_tokens=draft_tokens, accepted_tokens=accepted_tokens).tpot_s
        self.slope: list[float] = ((high - low) / 32_768.0).tolist()
        self.base: list[float] = (low - np.asarray(self.slope) * 1024.0).tolist()
        self.setting, self.ranks = setting, place.dp
        self._fills: dict[int, float] = {}

    def step_s(self, running: int, context: float) -> float:
        return self.base[running - 1] + self.slope[running - 1] * context

    def fill_s(self, tokens: int) -> float:
        bucket = max(tokens // 64, 1) * 64
        if bucket not in self._fills:
            self._fills[bucket] = float(fill(self.setting, float(bucket)).ttft_s) - self.setting.machine.engine.step_s
        return self._fills[bucket]


def closed_loop(setting: Setting, load: Load, *, draft_tokens: int = 0, accepted_tokens: float = 1.0) -> Served:
    """Serve `load.requests` requests and return their mean first-token and per-token seconds.

    Parameters
    ----------
    draft_tokens, accepted_tokens
        Speculation: positions verified beyond one, and output tokens per pass.
    """
    rng = np.random.default_rng(load.seed)
    low = load.spread_ratio
    inputs = np.rint(load.input_tokens * rng.uniform(low, 1.0, load.requests)).astype(int).tolist()
    outputs = np.maximum(np.rint(load.output_tokens * rng.uniform(low, 1.0, load.requests)), 2).astype(int).tolist()
    times, engine = _Times(setting, load, draft_tokens, accepted_tokens), setting.machine.engine
    now, steps, context = 0.0, 0, 0.0
    waiting: list[tuple[float, int]] = [(0.0, i) for i in range(min(load.concurrency, load.requests))]
    admitted = len(waiting)
    running: list[tuple[int, int]] = []
    first: dict[int, float] = {}
    ttft, tpot = [], []
    while waiting or running:
        if waiting:
            group: list[tuple[float, int]] = []
            filled = 0
            while waiting and (not group or filled + inputs[waiting[0][1]] <= load.chunk_tokens):
                group.append(waiting.pop(0))
                filled += inputs[group[-1][1]]
            now += times.fill_s(max(filled // min(times.ranks, len(group)), 1))
            for came, i in group:
                first[i] = now
                ttft.append(engine.first_token_fixed_s + engine.first_token_ratio * (now - came))
                heapq.heappush(running, (steps + outputs[i] - 1, i))
                context += inputs[i]
            continue
        ends, alive = running[0][0], len(running)
        count = ends - steps
        now += count * times.step_s(alive, context / alive + 0.5 * count)
        steps, context = ends, context + count * alive
        while running and running[0][0] <= ends:
            _, i = heapq.heappop(running)
            context -= inputs[i] + outputs[i] - 1
            tpot.append((now - first[i]) / (outputs[i] - 1))
            if admitted < load.requests:
                waiting.append((now, admitted))
                admitted += 1
    return Served(
        ttft_s=float(np.mean(ttft)), tpot_s=float(np.mean(tpot)), output_tokens_per_s=float(sum(outputs)) / now
    )
