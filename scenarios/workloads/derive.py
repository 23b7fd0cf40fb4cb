"""Derive the cached and new tokens of every request from its block ids, under an infinite prefix cache.

cached = min(prompt, block size x longest leading run of ids already seen in the scope); new = prompt - cached.
Requests are taken in the order of their starts (ties: root first, then streams in their order); a scope is the
conversation, or the whole corpus where ids are global. This is the theoretical hit ratio that AgentX prints with
its results. It counts blocks only: a fully cached prompt has new = 0 here, where an engine recomputes at least the last
token.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from scenarios.workloads.blocks import SeenBlocks
from scenarios.workloads.corpus import Conversation, Corpus

Tokens = NDArray[np.int64]


def order(conversation: Conversation) -> list[tuple[int, int]]:
    """Return (stream, ordinal) of every request by recorded start; within a stream never out of its order."""
    keyed: list[tuple[float, int, int]] = []
    for s, stream in enumerate(conversation.streams):
        starts = np.maximum.accumulate(stream.t_s).tolist()
        keyed.extend((t, s, k) for k, t in enumerate(starts))
    keyed.sort()
    return [(s, k) for _, s, k in keyed]


def cached_tokens(conversation: Conversation, seen: SeenBlocks | None = None) -> list[Tokens]:
    """Return the cached tokens of each request by stream, shape (n,); `seen` holds the blocks of a global scope."""
    seen = SeenBlocks() if seen is None else seen
    prompts = [stream.prompt_tokens.tolist() for stream in conversation.streams]
    runs = [stream.all_runs() for stream in conversation.streams]
    out: list[list[int]] = [[0] * len(p) for p in prompts]
    size = conversation.block_tokens
    for s, k in order(conversation):
        chain = runs[s][k]
        out[s][k] = min(seen.leading_blocks(chain) * size, prompts[s][k])
        seen.add(chain)
    return [np.array(column, dtype=np.int64) for column in out]


def with_cached_tokens(corpus: Corpus) -> Iterator[tuple[Conversation, list[Tokens]]]:
    """Yield each conversation with its cached tokens; a global scope is shared in the corpus's order."""
    shared = SeenBlocks() if corpus.scope == "global" else None
    for conversation in corpus.conversations:
        yield conversation, cached_tokens(conversation, shared)


def hit_token_ratio(corpus: Corpus) -> float:
    """Return the share of prompt tokens that an infinite cache supplies: the theoretical prefix hit."""
    cached = prompt = 0
    for conversation, columns in with_cached_tokens(corpus):
        cached += sum(int(column.sum()) for column in columns)
        prompt += sum(int(stream.prompt_tokens.sum()) for stream in conversation.streams)
    return cached / prompt if prompt else 0.0
