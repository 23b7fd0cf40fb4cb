"""Sources without a trace: a saturated admission queue, and Poisson arrivals whose rate may step.

Turn n of a source has key hash(source, n), whatever the policy; its lengths and hidden draws depend only on that key,
so every policy on one seed sees the same turns. Draws are made in blocks.
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

BLOCK_TURNS = 1024  # larger blocks are evicted from the processor's cache before their turns are created
# More admissions at one instant than any pool holds: the admission law sets neither a rate nor a cap.
AT_ONCE_TURNS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """A distribution of token counts: `fixed`, `uniform` (low..high), `exponential` or `lognormal` (mean, cv); >= 1."""

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
    """One service class of a synthetic workload: its share of the turns and the distributions of its lengths."""

    name: ClassName
    share: float
    prompt: Lengths
    output: Lengths


class TurnFactory:
    """Create turns number 0, 1, 2, ... of a source, with their hidden halves.

    Parameters
    ----------
    seed : int
        The scenario's seed.
    name : str
        The source's name; it separates this source's keys from those of others.
    mixes : sequence of ClassMix
    hidden_turns : HiddenTurns
    """

    def __init__(self, seed: int, name: str, mixes: Sequence[ClassMix], hidden_turns: HiddenTurns) -> None:
        self._mixes, self._hidden_turns = list(mixes), hidden_turns
        self.forget = hidden_turns.forget
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
            in_class = classes == i
            prompts[in_class], outputs[in_class] = mix.prompt.of(prompt[in_class]), mix.output.of(output[in_class])
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
        key, name, prompt_tokens, hidden_turn = self._block.pop()
        turn_id = TurnId(self.count)
        self.count += 1
        self._hidden_turns[turn_id] = hidden_turn
        return new(TurnView, (turn_id, key, name, turn_id, 0, now_s, prompt_tokens, EMPTY_CHAIN))


class Saturated:
    """Keep `waiting_turns` turns in the admission queue: each release creates the next one.

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
        """Fill the admission queue."""
        self._arrive = arrive
        for _ in range(self._waiting):
            arrive(self._factory.next(self._clock.now()))

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Replace the admitted turn; raise UserError where admissions at one instant have no limit."""
        assert self._arrive is not None
        if at_s != self._instant_s:
            self._instant_s, self._at_once = at_s, 0
        self._at_once += 1
        if self._at_once > AT_ONCE_TURNS + self._waiting:
            raise UserError(
                f"workload.kind saturated: {self._at_once} turns were admitted at t = {at_s:g} s without a limit; "
                "set admission.max_release_per_s, or an admission law that sets a rate or a cap"
            )
        self._arrive(self._factory.next(at_s))

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Forget the turn's hidden half; a rejected turn is not replaced, or rejections would never end."""
        self._factory.forget(turn_id, outcome)

    def exhausted(self) -> bool:
        """Return False: the source never ends."""
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
        """Schedule the first arrival."""
        self._arrive = arrive
        self._next(0.0)

    def _next(self, from_s: float) -> None:
        """Schedule the arrival one unit gap of integrated rate after `from_s`."""
        if self._turns is not None and self._factory.count >= self._turns:
            return
        remaining = self._gaps.pop() if self._gaps else self._unit_gap()
        at_s = from_s
        if self._steady_per_s is not None and at_s >= self._steps[0][0]:
            due_s = at_s + remaining / self._steady_per_s
            self._clock.at(due_s, self._arrives, due_s)
            return
        for i, (start_s, rate_per_s) in enumerate(self._steps):
            end_s = self._steps[i + 1][0] if i + 1 < len(self._steps) else math.inf
            if end_s <= at_s:
                continue
            at_s = max(at_s, start_s)
            area = rate_per_s * (end_s - at_s) if rate_per_s > 0.0 else 0.0
            if remaining <= area:
                due_s = at_s + remaining / rate_per_s
                self._clock.at(due_s, self._arrives, due_s)
                return
            remaining -= area
            at_s = end_s

    def _arrives(self, due_s: float) -> None:
        """Create an arrival; the next gap counts from its due time, so a late clock loses no arrivals."""
        assert self._arrive is not None
        self._arrive(self._factory.next(self._clock.now()))
        self._next(due_s)

    def admitted(self, turn_id: TurnId, at_s: float) -> None:
        """Ignore admissions: arrivals do not depend on them."""

    def ended(self, turn_id: TurnId, at_s: float, outcome: str) -> None:
        """Forget the turn's hidden half."""
        self._factory.forget(turn_id, outcome)

    def exhausted(self) -> bool:
        """Return whether the stated number of turns has arrived."""
        return self._turns is not None and self._factory.count >= self._turns
