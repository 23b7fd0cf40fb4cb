"""Filter the conversations of a corpus: first the filters, then the cap; everything left out is counted.

A cap before the filters would leave fewer conversations than requested, and lanes that repeat them would reuse each
other's prefixes. An empty result is an error.
"""

from __future__ import annotations

from dataclasses import replace

from scenarios.errors import UserError
from scenarios.workloads.corpus import Conversation, Corpus


def select(
    corpus: Corpus, *, max_context_tokens: int | None = None, min_requests: int = 1, limit: int | None = None
) -> Corpus:
    """Return the corpus without conversations that break a filter, then with the first `limit` of the rest.

    Parameters
    ----------
    corpus : Corpus
    max_context_tokens : int, optional
        The largest sum of prompt and output tokens in a conversation; of independent rows, single rows are
        left out.
    min_requests : int
        The fewest requests; does not apply to independent rows.
    limit : int, optional
        The most conversations to keep.

    Raises
    ------
    UserError
        No conversation is left.
    """
    kept = []
    for conversation in corpus.conversations:
        alone = conversation.streams[0].relation == "independent"
        if alone and max_context_tokens is not None:
            conversation = _rows_within(corpus, conversation, max_context_tokens)
        elif max_context_tokens is not None and peak_tokens(conversation) > max_context_tokens:
            corpus.repairs.note(f"context above {max_context_tokens:,} tokens", conversation.name, "left out")
            continue
        if not alone and conversation.requests < min_requests:
            corpus.repairs.note(f"fewer than {min_requests} requests", conversation.name, "left out")
            continue
        kept.append(conversation)
    if limit is not None and len(kept) > limit:
        corpus.repairs.note(f"beyond the first {limit} conversations", kept[limit].name, "left out", len(kept) - limit)
        kept = kept[:limit]
    if not any(conversation.requests for conversation in kept):
        raise UserError(
            f"{corpus.name}: no conversation is left after the filters (max_context_tokens = {max_context_tokens}, "
            f"min_requests = {min_requests})"
        )
    return replace(corpus, conversations=kept)


def peak_tokens(conversation: Conversation) -> int:
    """Return the largest sum of prompt and output tokens of a request."""
    return max(int((s.prompt_tokens + s.output_tokens).max()) for s in conversation.streams if len(s))


def _rows_within(corpus: Corpus, conversation: Conversation, most: int) -> Conversation:
    (stream,) = conversation.streams
    inside = (stream.prompt_tokens + stream.output_tokens) <= most
    removed = int((~inside).sum())
    if not removed:
        return conversation
    corpus.repairs.note(f"context above {most:,} tokens", conversation.name, "row left out", removed)
    return replace(conversation, streams=(stream.where(inside),))
