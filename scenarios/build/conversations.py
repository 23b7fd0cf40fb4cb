"""Conversations of a workload: read or made once, ready to play, with what is known of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios.errors import UserError
from scenarios.schema.scenario import Scenario
from scenarios.schema.trace_workloads import (
    Conversations,
    GeneratedConversations,
    MixtureWorkload,
    Played,
    ReplayWorkload,
    TraceConversations,
)
from scenarios.workloads.corpus import Conversation, Corpus
from scenarios.workloads.derive import hit_token_ratio
from scenarios.workloads.script import Script, scripts
from scenarios.workloads.select import select

if TYPE_CHECKING:
    from scenarios.workloads.readers.rows import ReadOptions

KEPT = 2  # corpora kept ready in one process: candidates and seeds of a comparison play the same one


@dataclass(frozen=True, slots=True)
class Prepared:
    """The corpus, its scripts to play, and its own figures for the record."""

    corpus: Corpus
    scripts: list[Script]
    is_global: bool
    median_prompt_tokens: float
    facts: dict[str, Any]  # Any: what JSON holds


def prepared(part: GeneratedConversations | TraceConversations) -> Prepared:
    """Return the conversations of a table; a file is read again only when it has changed.

    Raises
    ------
    UserError
        The trace cannot be read, or holds no conversation.
    """
    stamp: tuple[int, int] | None = None
    if isinstance(part, TraceConversations) and Path(part.path).is_file():
        stat = Path(part.path).stat()
        stamp = (stat.st_size, stat.st_mtime_ns)
    return _prepared(part, stamp)


@lru_cache(maxsize=KEPT)
def _prepared(part: GeneratedConversations | TraceConversations, stamp: tuple[int, int] | None) -> Prepared:
    if isinstance(part, GeneratedConversations):
        from scenarios.workloads.generate.presets import generate  # slow to import, as the readers are

        corpus = generate(part.preset, sessions=part.sessions, seed=part.corpus_seed)
    else:
        from scenarios.workloads.readers.detect import read

        corpus = read(part.path, form=part.format, options=_options(part))
    corpus = select(
        corpus, max_context_tokens=part.max_context_tokens, min_requests=part.min_requests, limit=part.limit
    )
    if part.main_stream_only:
        corpus = replace(corpus, conversations=[_main_stream(conversation) for conversation in corpus.conversations])
    played = scripts(corpus, share_prefix=part.share_prefix)
    if not played:
        raise UserError(f"{corpus.name}: holds no conversation")
    return Prepared(corpus, played, corpus.scope == "global", _median_prompt(corpus), _facts(corpus))


def _options(part: TraceConversations) -> ReadOptions:
    from scenarios.workloads.readers.rows import ReadOptions

    return ReadOptions(
        on_error=part.on_error,
        subagent_clock=part.subagent_clock,
        block_tokens=part.block_tokens,
        delta=part.delta,
        drop_doubles=part.drop_doubles,
        columns=part.columns,
        time_unit=part.time_unit,
        spread_stamps=part.spread_stamps,
        stated_thinks=part.think_times == "stated",
        seed=part.corpus_seed,
        horizon_s=part.generate_s,
    )


def _main_stream(conversation: Conversation) -> Conversation:
    return replace(conversation, streams=(replace(conversation.streams[0], waits={}),))


def _median_prompt(corpus: Corpus) -> float:
    prompts = [stream.prompt_tokens for conversation in corpus.conversations for stream in conversation.streams]
    return float(np.median(np.concatenate(prompts)))


def _facts(corpus: Corpus) -> dict[str, Any]:
    return {
        "name": corpus.name,
        "format": corpus.format,
        "digest": corpus.digest(),
        "conversations": len(corpus.conversations),
        "requests": corpus.requests,
        "hit_token_ratio": hit_token_ratio(corpus),
        "repairs": [asdict(entry) for entry in corpus.repairs.entries.values()],
    }


def facts(scenario: Scenario) -> dict[str, Any] | None:
    """Return what the record says of the scenario's conversations; None where it plays none."""
    workload = scenario.workload
    if isinstance(workload, MixtureWorkload):
        parts = {name: dict(prepared(part.conversations).facts) for name, part in workload.parts.items()}
        return {"parts": parts, "repairs": [row for part in parts.values() for row in part["repairs"]]}
    return dict(prepared(workload.conversations).facts) if isinstance(workload, Played | ReplayWorkload) else None


def with_trace(scenario: Scenario, path: Path, columns: str | None = None) -> Scenario:
    """Return the scenario with its conversations replaced by those of a trace; `columns` says how to read a table.

    Settings that the scenario states for the conversations hold for the trace too, but for those of a file's own form.

    Raises
    ------
    UserError
        Its workload plays no conversations.
    """
    workload = scenario.workload
    if not isinstance(workload, Played | ReplayWorkload):
        raise UserError(f"--trace: the workload of this scenario is {workload.kind}, which plays no conversations")
    old = workload.conversations
    of_any = set(Conversations.model_fields)
    of_form = {"kind", "path", "format", "columns"}
    kept = old.model_dump(include=of_any if old.kind == "generated" else (old.model_fields_set | of_any) - of_form)
    trace = TraceConversations(kind="trace", path=str(path), columns=columns, **kept)
    prepared(trace)  # a trace that cannot be read is reported before anything runs
    return scenario.model_copy(update={"workload": workload.model_copy(update={"conversations": trace})})
