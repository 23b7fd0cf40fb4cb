"""Blocks for sources that state how much was cached but give no ids.

Each request keeps the first `prefix` tokens of the one before it and goes on with ids never used before, one id a
token (runs make that as cheap as any block). Deriving cached tokens from these ids gives the stated prefix back, as
far as it lies inside the previous prompt. A provider that lost a cache entry looks the same as a prompt that changed.
"""

from __future__ import annotations

from scenarios.workloads import blocks
from scenarios.workloads.blocks import Run


class StatedPrefix:
    """The chain of one stream; `BLOCK_TOKENS` is 1."""

    BLOCK_TOKENS = 1

    def __init__(self, first_id: int = 1) -> None:
        self._next = first_id
        self._runs: list[Run] = []
        self.beyond_tokens = 0

    def extend(self, prompt_tokens: int, prefix_tokens: int) -> list[Run]:
        """Return the prompt's runs: the stated prefix of the last prompt, then new ids.

        `beyond_tokens` sums what was stated as cached beyond the last prompt: its answer, or another session's prompt.
        """
        held = blocks.count(self._runs)
        kept = blocks.head(self._runs, min(prefix_tokens, prompt_tokens))
        if held:
            self.beyond_tokens += max(0, prefix_tokens - held)
        fresh = prompt_tokens - blocks.count(kept)
        self._runs = blocks.join([*kept, (self._next, fresh)]) if fresh else kept
        self._next += fresh
        return self._runs
