"""Workloads without a trace: a door that is always backlogged, and Poisson arrivals whose rate may step.

Turn n of a source has key hash(source, n), whatever the policy; its lengths and its hidden draws hang on that key, so
every policy on one seed meets the same turns. Draws are made in blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from orchestrator.clock import Clock
from orchestrator.rng import mix_block, stream_key, uniforms
from orchestrator.turn import EMPTY_CHAIN, ClassName, TurnId, TurnView, new
from plant.hidden_turns import HiddenTurn, HiddenTurns
from scenarios.errors import UserError

BLOCK_TURNS = 1024  # a larger block has left the processor's cache by the time its turns are born
# More turns let in at one instant than any pool holds: the door has neither a rate nor a cap.
AT_ONCE_TURNS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """A law of token counts: `fixed`, `uniform` (low..high), `exponential` or `lognormal` (mean, cv); at least 1."""

    shape: Literal["fixed", "uniform", "exponential", "lognormal"]
    mean_tokens: float
    cv_ratio: float = 1.0
    high_tokens: float = 0.0

    def of(self, u: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return integer lengths for uniforms `u`, shape (n,)."""
        if self.shape == "fixed":
            x = np.full(len(u), self.mean_tokens)
        elif self.shape == "uniform":
            x = self.mean_tokens + (self.high_tokens - self.mean_tokens) * u
        elif self.shape == "exponential":
            x = -self.mean_tokens * np.log1p(-u)
        else:
            sigma2 = math.log1p(self.cv_ratio**2)
            x = self.mean_tokens * np.exp(math.sqrt(sigma2) * special.ndtri(u) - 0.5 * sigma2)
        tokens: NDArray[np.int64] = np.maximum(1, np.rint(x)).astype(np.int64)
        return tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMix:
    """One service class of a synthetic workload: its share of the turns and the laws of its lengths."""

    name: ClassName
    share: float
    prompt: Lengths
    output: Lengths


class TurnFactory:
    """Make turns number 0, 1, 2, ... of a source, with their truths.

    Parameters
    ----------
    seed : int
        The scenario's seed.
    name : str
        The source's name; it parts this source's keys from any other's.
    mixes : sequence of ClassMix
    truths : HiddenTurns
    """

    def __init__(self, seed: int, name: str, mixes: Sequence[ClassMix], truths: HiddenTurns) -> None:
        self._mixes, self._truths = list(mixes), truths
        self.forget = truths.forget
        self._source = stream_key(seed, f"source {name}")
        self._streams = [stream_key(seed, f"{name} {part}") for part in ("class", "prompt", "output", "draw")]
        total = fsum(mix.share for mix in mixes)
        self._edges = np.cumsum([mix.share / total for mix in mixes])
        self.count = 0
        self._block: list[tuple[int, ClassName, int, HiddenTurn]] = []

    def _more(self) -> None:
        keys = mix_block(self._source, np.arange(self.count, self.count + BLOCK_TURNS, dtype=np.uint64))
        which, prompt, output, draw = (uniforms(stream, keys) for stream in self._streams)
        classes = np.searchsorted(self._edges, which, side="right").clip(0, len(self._mixes) - 1)
        prompts, outputs = np.zeros(BLOCK_TURNS, np.int64), np.zeros(BLOCK_TURNS, np.int64)
        for i, mix in enumerate(self._mixes):
            mine = classes == i
            prompts[mine], outputs[mine] = mix.prompt.of(prompt[mine]), mix.output.of(output[mine])
        names = [mix.name for mix in self._mixes]
        self._block = [
            (key, names[c], p, new(HiddenTurn, (o, (d,), None, "")))
            for key, c, p, o, d in zip(
                keys.tolist(), classes.tolist(), prompts.tolist(), outputs.tolist(), draw.tolist()
            )
        ]
        self._block.reverse()

    def next(self, now_s: float) -> TurnView:
        """Return the next turn, arriving now."""
        if not self._block:
            self._more()
        key, name, prompt_tokens, truth = self._block.pop()
        turn_id = TurnId(self.count)
        self.count += 1
        self._truths[turn_id] = truth
        return new(TurnView, (turn_id, key, name, turn_id, 0, now_s, prompt_tokens, EMPTY_CHAIN))


class Saturated:
    """Never fewer than `waiting_turns` turns at the door: each release brings the next one.

    Parameters
    ----------
    clock : Clock
    factory : TurnFactory
    waiting_turns : int
    """

    def __init__(self, clock: Clock, factory: TurnFactory, waiting_turns: int) -> None:
        self._clock, self._factory, self._waiting = clock, factory, waiting_turns
        self._arrive: Callable[[TurnView], None] | None = None
        self._instant_s, self._at_once = -1.0, 0

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Fill the front door."""
        self._arrive = arrive
        for _ in range(self._waiting):
            arrive(self._factory.next(self._clock.now()))

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Replace the turn that was let in; raises UserError where the door would let in turns without end."""
        assert self._arrive is not None
        if at_s != self._instant_s:
            self._instant_s, self._at_once = at_s, 0
        self._at_once += 1
        if self._at_once > AT_ONCE_TURNS + self._waiting:
            raise UserError(
                f"workload.kind saturated: the door let in {self._at_once} turns at t = {at_s:g} s and would not "
                "stop; state admission.max_release_per_s, or a law that sets a rate or a cap"
            )
        self._arrive(self._factory.next(at_s))

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Forget the turn's truth; a turn refused at the door is not replaced, or refusals would never end."""
        self._factory.forget(turn_id, outcome)

    def exhausted(self) -> bool:
        """There is always another."""
        return False


class Poisson:
    """Independent arrivals at a rate that is constant between steps.

    Parameters
    ----------
    clock : Clock
    factory : TurnFactory
    seed : int
    steps : sequence of (float, float)
        (from_s, rate_per_s), in order of time; the first begins at 0.
    turns : int, optional
        Stop after so many turns; None: never.
    """

    def __init__(
        self,
        clock: Clock,
        factory: TurnFactory,
        seed: int,
        steps: Sequence[tuple[float, float]],
        turns: int | None = None,
    ) -> None:
        self._clock, self._factory, self._turns = clock, factory, turns
        self._steps = list(steps)
        self._steady_per_s = self._steps[0][1] if len(self._steps) == 1 and self._steps[0][1] > 0.0 else None
        self._stream = stream_key(seed, "arrivals")
        self._arrive: Callable[[TurnView], None] | None = None
        self._gaps: list[float] = []
        self._drawn = 0

    def _unit_gap(self) -> float:
        """Draw a block of exponential gaps of mean 1, and return its first."""
        keys = np.arange(self._drawn, self._drawn + BLOCK_TURNS, dtype=np.uint64)
        self._gaps = (-np.log1p(-uniforms(self._stream, keys))).tolist()[::-1]
        self._drawn += BLOCK_TURNS
        return self._gaps.pop()

    def start(self, arrive: Callable[[TurnView], None]) -> None:
        """Set the first arrival."""
        self._arrive = arrive
        self._next(0.0)

    def _next(self, from_s: float) -> None:
        """Spend one unit gap of integrated rate from `from_s` on."""
        if self._turns is not None and self._factory.count >= self._turns:
            return
        left = self._gaps.pop() if self._gaps else self._unit_gap()
        at_s = from_s
        if self._steady_per_s is not None and at_s >= self._steps[0][0]:
            due_s = at_s + left / self._steady_per_s
            self._clock.at(due_s, self._arrives, due_s)
            return
        for i, (start_s, rate_per_s) in enumerate(self._steps):
            end_s = self._steps[i + 1][0] if i + 1 < len(self._steps) else math.inf
            if end_s <= at_s:
                continue
            at_s = max(at_s, start_s)
            room = rate_per_s * (end_s - at_s) if rate_per_s > 0.0 else 0.0
            if left <= room:
                due_s = at_s + left / rate_per_s
                self._clock.at(due_s, self._arrives, due_s)
                return
            left -= room
            at_s = end_s

    def _arrives(self, due_s: float) -> None:
        """Let a turn arrive; the next gap counts from when this one was due, so a late clock loses none."""
        assert self._arrive is not None
        self._arrive(self._factory.next(self._clock.now()))
        self._next(due_s)

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Arrivals do not wait for admissions."""

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Forget the turn's truth."""
        self._factory.forget(turn_id, outcome)

    def exhausted(self) -> bool:
        """Tell whether the stated number of turns has arrived."""
        return self._turns is not None and self._factory.count >= self._turns
