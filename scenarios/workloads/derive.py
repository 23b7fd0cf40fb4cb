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


def cached_tokens(conversation: Conversation) -> list[Tokens]:
    """Return the cached tokens of each request by stream, shape (n,), in a scope of its own."""
    seen = SeenBlocks()
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
    """Yield each conversation with its cached tokens; a global scope is shared by all, in the order of time."""
    if corpus.scope == "global":
        yield from zip(corpus.conversations, _shared_cached_tokens(corpus))
        return
    for conversation in corpus.conversations:
        yield conversation, cached_tokens(conversation)


def _shared_cached_tokens(corpus: Corpus) -> list[list[Tokens]]:
    """Return the cached tokens of all conversations under one scope, requests taken by the clock that they share.

    Without a shared clock, conversations follow each other in the corpus's order.
    """
    streams = [(c, s, stream) for c, talk in enumerate(corpus.conversations) for s, stream in enumerate(talk.streams)]
    has_clock = all(talk.start_s is not None for talk in corpus.conversations)
    number = np.concatenate([np.full(len(stream), n) for n, (_, _, stream) in enumerate(streams)])
    ordinal = np.concatenate([np.arange(len(stream)) for _, _, stream in streams])
    origins = [corpus.conversations[c].start_s or 0.0 for c, _, _ in streams]
    starts = [np.maximum.accumulate(stream.t_s) + origin for (_, _, stream), origin in zip(streams, origins)]
    owner = np.array([c for c, _, _ in streams])[number]
    rank = np.zeros(len(number)) if has_clock else owner
    by_time = np.lexsort((ordinal, number, np.concatenate(starts), rank))
    seen = SeenBlocks()
    out: list[list[Tokens]] = [
        [np.zeros(len(stream), np.int64) for stream in talk.streams] for talk in corpus.conversations
    ]
    for n, k in zip(number[by_time].tolist(), ordinal[by_time].tolist()):
        c, s, stream = streams[n]
        chain = stream.runs(k)
        blocks = seen.leading_blocks(chain)
        out[c][s][k] = min(blocks * corpus.conversations[c].block_tokens, int(stream.prompt_tokens[k]))
        seen.add(chain)
    return out


def hit_token_ratio(corpus: Corpus) -> float:
    """Return the share of prompt tokens that an infinite cache supplies: the theoretical prefix hit."""
    cached = prompt = 0
    for conversation, columns in with_cached_tokens(corpus):
        cached += sum(int(column.sum()) for column in columns)
        prompt += sum(int(stream.prompt_tokens.sum()) for stream in conversation.streams)
    return cached / prompt if prompt else 0.0
