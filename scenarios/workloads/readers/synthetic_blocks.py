"""Synthesise block ids for traces that state how many tokens were cached but give no ids.

Each request keeps the first `prefix` tokens of the previous one and continues with new ids, one id per token (runs
keep that cheap). Deriving cached tokens from these ids reproduces the stated prefix, as far as it lies inside the
previous prompt. A provider that lost a cache entry looks the same as a prompt that changed.
"""

from __future__ import annotations

from scenarios.workloads import blocks
from scenarios.workloads.blocks import Run
from scenarios.workloads.repairs import Repairs


class StatedPrefix:
    """The block ids of one stream; `BLOCK_TOKENS` is 1."""

    BLOCK_TOKENS = 1

    def __init__(self, first_id: int = 1) -> None:
        self._next = first_id
        self._runs: list[Run] = []
        self.beyond_tokens = 0

    def extend(self, prompt_tokens: int, prefix_tokens: int) -> list[Run]:
        """Return the prompt's runs: the stated prefix of the last prompt, then new ids.

        `beyond_tokens` sums the tokens stated as cached beyond the last prompt: its answer, another session's prompt,
        or, for a first prompt, what the session found when it began.
        """
        previous_blocks = blocks.count(self._runs)
        kept = blocks.head(self._runs, min(prefix_tokens, prompt_tokens))
        self.beyond_tokens += max(0, min(prefix_tokens, prompt_tokens) - previous_blocks)
        new_blocks = prompt_tokens - blocks.count(kept)
        self._runs = blocks.join([*kept, (self._next, new_blocks)]) if new_blocks else kept
        self._next += new_blocks
        return self._runs


def note_beyond(beyond_tokens: int, at: str, repairs: Repairs) -> None:
    """Count the tokens that a source states as cached and that count as new here."""
    if beyond_tokens:
        done = "cached in the source beyond the previous prompt; new here, as only prompts have block ids"
        repairs.note("stated prefix beyond the last prompt, tokens", at, done, beyond_tokens)
