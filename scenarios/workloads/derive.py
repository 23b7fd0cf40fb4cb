"""What the block ids say: cached and new tokens of every request under an infinite cache.

cached = min(prompt, block size x longest leading run of ids already seen in the scope); new = prompt - cached.
Requests are taken in the order of their starts (ties: root first, then streams in their order); a scope is the
conversation, or the whole corpus where ids are global. This is the theoretical hit that AgentX prints beside results.
It is an arithmetic of blocks: a prompt whose every token is cached has new = 0 here, where an engine recomputes at
least its last token.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from scenarios.workloads.blocks import Seen
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


def cached_tokens(conversation: Conversation, seen: Seen | None = None) -> list[Tokens]:
    """Return for each stream the cached tokens of each request, shape (n,); `seen` carries a global scope on."""
    seen = Seen() if seen is None else seen
    prompts = [stream.prompt_tokens.tolist() for stream in conversation.streams]
    runs = [stream.all_runs() for stream in conversation.streams]
    out: list[list[int]] = [[0] * len(p) for p in prompts]
    size = conversation.block_tokens
    for s, k in order(conversation):
        chain = runs[s][k]
        out[s][k] = min(seen.leading(chain) * size, prompts[s][k])
        seen.add(chain)
    return [np.array(column, dtype=np.int64) for column in out]


def all_cached(corpus: Corpus) -> Iterator[tuple[Conversation, list[Tokens]]]:
    """Yield each conversation with its cached tokens; a global scope is carried through in the corpus's order."""
    shared = Seen() if corpus.scope == "global" else None
    for conversation in corpus.conversations:
        yield conversation, cached_tokens(conversation, shared)


def hit_token_ratio(corpus: Corpus) -> float:
    """Return the share of prompt tokens that an infinite cache supplies: the theoretical prefix hit."""
    cached = prompt = 0
    for conversation, columns in all_cached(corpus):
        cached += sum(int(column.sum()) for column in columns)
        prompt += sum(int(stream.prompt_tokens.sum()) for stream in conversation.streams)
    return cached / prompt if prompt else 0.0
