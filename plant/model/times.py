"""`StepTimes`, the interface through which the event loop asks how long decode steps and fill chunks take.

A decode step of `batch` sequences holding `kv_tokens` positions takes `step_s(batch, kv_tokens)`, linear in
`kv_tokens` at a fixed batch; each step adds one position per sequence. Then n steps and their inverse are closed forms:

    T(n) = n * step_s(B, KV) + slope(B) * B * n (n - 1) / 2
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol


class StepTimes(Protocol):
    """Seconds of decode steps and of fill chunks, for one worker of one configuration."""

    def step_s(self, batch: int, kv_tokens: int) -> float:
        """Return the seconds of one decode step of `batch` sequences that hold `kv_tokens` positions in all."""
        ...

    def span_s(self, batch: int, kv_tokens: int, steps: int) -> float:
        """Return the seconds of `steps` decode steps that begin with `kv_tokens` positions in all."""
        ...

    def steps_within(self, batch: int, kv_tokens: int, span_s: float) -> int:
        """Return how many whole steps end within `span_s` (inclusive, to one part in 1e12)."""
        ...

    def mixed_s(self, batch: int, kv_tokens: int, new_tokens: int, cached_tokens: int) -> float:
        """Return the seconds of one pass that decodes `batch` sequences and fills `new_tokens` after `cached_tokens`.

        With batch = 0 this is a pure fill chunk.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearTimes:
    """step = base_s + per_sequence_s x batch + per_kv_token_s x KV tokens + per_new_token_s x chunk tokens.

    `per_cached_token_s` charges a chunk for each position that it attends to before it.
    """

    base_s: float
    per_sequence_s: float
    per_kv_token_s: float
    per_new_token_s: float
    per_cached_token_s: float = 0.0

    def step_s(self, batch: int, kv_tokens: int) -> float:
        """Seconds of one decode step."""
        return self.base_s + self.per_sequence_s * batch + self.per_kv_token_s * kv_tokens

    def span_s(self, batch: int, kv_tokens: int, steps: int) -> float:
        """Seconds of `steps` decode steps; the context grows by `batch` positions a step."""
        first = self.base_s + self.per_sequence_s * batch + self.per_kv_token_s * kv_tokens
        return steps * first + self.per_kv_token_s * batch * (steps * (steps - 1) * 0.5)

    def steps_within(self, batch: int, kv_tokens: int, span_s: float) -> int:
        """Whole steps that end within `span_s`: the root of a quadratic, then corrected for rounding."""
        first = self.base_s + self.per_sequence_s * batch + self.per_kv_token_s * kv_tokens
        return steps_within(first, self.per_kv_token_s * batch, span_s)

    def mixed_s(self, batch: int, kv_tokens: int, new_tokens: int, cached_tokens: int) -> float:
        """Seconds of one pass that decodes the batch and fills a chunk."""
        return (
            self.base_s
            + self.per_sequence_s * batch
            + self.per_kv_token_s * kv_tokens
            + self.per_new_token_s * new_tokens
            + self.per_cached_token_s * cached_tokens
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargedFills:
    """Other times, with a fixed price of each pass that fills, and decode that waits for a fill where `apart`.

    An engine that stops decoding for a fill (SGLang without mixed chunks) runs the pass of the fill, then the step:
    their seconds add up, where a pass that holds both saves the reading of weights.
    """

    times: StepTimes
    per_chunk_s: float
    apart: bool

    def step_s(self, batch: int, kv_tokens: int) -> float:
        """Seconds of one decode step."""
        return self.times.step_s(batch, kv_tokens)

    def span_s(self, batch: int, kv_tokens: int, steps: int) -> float:
        """Seconds of `steps` decode steps."""
        return self.times.span_s(batch, kv_tokens, steps)

    def steps_within(self, batch: int, kv_tokens: int, span_s: float) -> int:
        """Whole steps that end within `span_s`."""
        return self.times.steps_within(batch, kv_tokens, span_s)

    def mixed_s(self, batch: int, kv_tokens: int, new_tokens: int, cached_tokens: int) -> float:
        """Seconds of a pass that fills, and of the step that waits for it or shares it."""
        if new_tokens <= 0:
            return self.times.mixed_s(batch, kv_tokens, new_tokens, cached_tokens)
        if not self.apart or batch == 0:
            return self.per_chunk_s + self.times.mixed_s(batch, kv_tokens, new_tokens, cached_tokens)
        alone_s = self.times.mixed_s(0, 0, new_tokens, cached_tokens)
        return self.per_chunk_s + alone_s + self.times.step_s(batch, kv_tokens)


def steps_within(first_s: float, growth_s: float, span_s: float) -> int:
    """Return the largest n with `n * first_s + growth_s * n (n - 1) / 2 <= span_s (1 + 1e-12)`.

    Parameters
    ----------
    first_s : float
        Seconds of the first step, > 0.
    growth_s : float
        Seconds that each step adds to the next, >= 0.
    span_s : float
        Seconds available.
    """
    limit_s = span_s * (1.0 + 1e-12)
    steps = approximate_steps(first_s, growth_s, limit_s)
    while (steps + 1) * first_s + growth_s * ((steps + 1) * steps * 0.5) <= limit_s:
        steps += 1
    while steps > 0 and steps * first_s + growth_s * (steps * (steps - 1) * 0.5) > limit_s:
        steps -= 1
    return steps


def approximate_steps(first_s: float, growth_s: float, limit_s: float) -> int:
    """Return the largest n with `n * first_s + growth_s * n (n - 1) / 2 <= limit_s`, up to rounding."""
    if limit_s < first_s:
        return 0
    if growth_s <= 0.0:
        return int(limit_s / first_s)
    b = first_s - 0.5 * growth_s
    return int((math.sqrt(b * b + 2.0 * growth_s * limit_s) - b) / growth_s)
