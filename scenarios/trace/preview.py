"""Preview the load of N lanes when every turn takes its recorded service time, without queue, plant or policy.

It sizes a system: requests and tokens per second, turns in flight, burstiness, and the share of the prompts that a
cache of a given size would supply. The cache is an LRU of sessions: each holds its last prompt, and the least recently
used are evicted when the sum exceeds the capacity. Its hit ratio drops steeply near lanes x mean prompt, the strongest
nonlinearity for a controller.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orchestrator.clock import Clock
from orchestrator.turn import ClassName, TurnId, TurnView
from orchestrator.virtual_clock import run_virtual
from plant.hidden_turns import HiddenTurn, HiddenTurns
from scenarios.trace import bursts
from scenarios.workloads.blocks import Run, common
from scenarios.workloads.corpus import ASSUMED_BASE_S, ASSUMED_PER_TOKEN_S
from scenarios.workloads.lanes import LanesSource
from scenarios.workloads.player import SourceContext
from scenarios.workloads.script import Script

CAPACITIES_TOKENS = (2_000_000, 5_000_000, 10_000_000, 20_000_000, 50_000_000)


class SessionCache:
    """An LRU cache of sessions, each with its last prompt, limited to a capacity in tokens."""

    __slots__ = ("_capacity", "_held", "_used")

    def __init__(self, capacity_tokens: int) -> None:
        self._capacity = capacity_tokens
        self._held: OrderedDict[int, int] = OrderedDict()
        self._used = 0

    def turn(self, session: int, prompt_tokens: int, kept_tokens: int) -> int:
        """Return the tokens served from the cache: the kept part of the session's last prompt, if still held."""
        before = self._held.pop(session, None)
        if before is not None:
            self._used -= before
        self._held[session] = prompt_tokens
        self._used += prompt_tokens
        while self._used > self._capacity:
            self._used -= self._held.popitem(last=False)[1]
        return 0 if before is None else kept_tokens


@dataclass(slots=True)
class _TurnLog:
    """Log of the turns of one preview."""

    clock: Clock
    hidden_turns: HiddenTurns
    source: LanesSource | None = None
    at_s: list[float] = field(default_factory=list)
    end_s: list[float] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    output: list[int] = field(default_factory=list)
    session: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    last: dict[int, list[Run]] = field(default_factory=dict)

    def arrive(self, turn: TurnView) -> None:
        hidden: HiddenTurn = self.hidden_turns.pop(turn.turn_id)
        service_s = hidden.service_s
        if service_s is None:
            service_s = ASSUMED_BASE_S + ASSUMED_PER_TOKEN_S * hidden.output_tokens
        runs = [(run.first, run.blocks) for run in turn.context.runs]
        before = self.last.get(turn.session_id, [])
        kept = min(common(before, runs) * turn.context.block_tokens, turn.prompt_tokens)
        self.last[turn.session_id] = runs
        self.at_s.append(turn.arrived_s)
        self.end_s.append(turn.arrived_s + service_s)
        self.prompt.append(turn.prompt_tokens)
        self.output.append(hidden.output_tokens)
        self.session.append(turn.session_id)
        self.kept.append(kept)
        self.clock.at(turn.arrived_s + service_s, self.end, turn.turn_id)

    def end(self, turn_id: TurnId) -> None:
        assert self.source is not None, "set before the start"
        self.source.ended(turn_id, self.clock.now(), "retired")


def preview(
    scripts: Sequence[Script],
    *,
    lanes: int,
    seed: int,
    tree_idle_cap_s: float | None = 300.0,
    start_window: tuple[float, float] = (0.0, 1.0),
    warmup_s: float = 3_600.0,
    window_s: float = 7_200.0,
    capacities_tokens: Sequence[int] = CAPACITIES_TOKENS,
) -> dict[str, Any]:
    """Return the load of N lanes over a window.

    Parameters
    ----------
    scripts : sequence of Script
    lanes : int
        Live session trees.
    seed : int
    tree_idle_cap_s : float, optional
        The longest idle time of a session; None: none. At equal lanes it changes the load severalfold.
    start_window : (float, float)
        Where the first sessions are cut, as shares of their recorded run.
    warmup_s, window_s : float
        The window begins after the warm-up; nothing outside it is counted.
    capacities_tokens : sequence of int
        Sizes of the session cache.

    Returns
    -------
    dict
        requests_per_s, in_flight_turns (mean, p99), input, new (with the largest cache) and output tokens_per_s,
        dispersion by width, hit_token_ratio by capacity, turns.
    """

    async def simulate(clock: Clock) -> _TurnLog:
        log = _TurnLog(clock, HiddenTurns())
        context = SourceContext(
            clock=clock, hidden_turns=log.hidden_turns, births=itertools.count(), class_name=ClassName("preview")
        )
        log.source = LanesSource(
            context, scripts, lanes=lanes, seed=seed, start_window=start_window, tree_idle_cap_s=tree_idle_cap_s
        )
        log.source.start(log.arrive)
        await clock.sleep_until(warmup_s + window_s)
        return log

    return _figures(run_virtual(simulate), warmup_s, window_s, capacities_tokens)


def averaged(
    scripts: Sequence[Script],
    *,
    lanes: int,
    seeds: int,
    tree_idle_cap_s: float | None = 300.0,
    window_s: float = 7_200.0,
) -> dict[str, Any]:
    """Return the mean figures of several previews, with their settings."""
    runs = [
        preview(scripts, lanes=lanes, seed=seed, tree_idle_cap_s=tree_idle_cap_s, window_s=window_s)
        for seed in range(seeds)
    ]
    head = {"lanes": lanes, "seeds": seeds, "tree_idle_cap_s": tree_idle_cap_s, "window_s": window_s}
    out: dict[str, Any] = head | {"start_window": [0.0, 1.0], "recycle": True}
    for name, value in runs[0].items():
        if isinstance(value, dict):
            out[name] = {key: _mean([run[name][key] for run in runs]) for key in value}
        else:
            out[name] = float(np.mean([run[name] for run in runs]))
    return out


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the known values; None where there are none, as in a window too short for a bin width."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _figures(log: _TurnLog, warmup_s: float, window_s: float, capacities: Sequence[int]) -> dict[str, Any]:
    at, end = np.array(log.at_s), np.array(log.end_s)
    close_s = warmup_s + window_s
    inside = (at >= warmup_s) & (at < close_s)
    prompt, output = np.array(log.prompt), np.array(log.output)
    hits = {c: _hit(log, inside, c) for c in capacities}
    edges = np.arange(warmup_s, close_s, 1.0)
    in_flight = np.searchsorted(np.sort(at), edges, side="right") - np.searchsorted(np.sort(end), edges, side="right")
    best = max(hits.values(), default=0.0)
    return {
        "turns": int(inside.sum()),
        "requests_per_s": float(inside.sum() / window_s),
        "in_flight_turns": float(in_flight.mean()),
        "in_flight_p99_turns": float(np.percentile(in_flight, 99)),
        "input_tokens_per_s": float(prompt[inside].sum() / window_s),
        "new_tokens_per_s": float(prompt[inside].sum() * (1.0 - best) / window_s),
        "output_tokens_per_s": float(output[inside].sum() / window_s),
        "dispersion": {f"{w:g}s": bursts.dispersion(at[inside], w) for w in bursts.WIDTHS_S},
        "hit_token_ratio": {str(c): hit for c, hit in hits.items()},
    }


def _hit(log: _TurnLog, inside: Any, capacity_tokens: int) -> float:  # an array of bool
    cache = SessionCache(capacity_tokens)
    cached = [cache.turn(*turn) for turn in zip(log.session, log.prompt, log.kept)]
    prompts = np.array(log.prompt)[inside].sum()
    return float(np.array(cached)[inside].sum() / prompts) if prompts else 0.0
