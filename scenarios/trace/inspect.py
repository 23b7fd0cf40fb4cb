"""Compute every figure of `steadyflow trace inspect` from a corpus; nothing is fitted or drawn at random.

Lengths in tokens, times in seconds. Quantiles are of the sorted values with linear interpolation (numpy's default).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.trace import bursts, labels
from scenarios.workloads import derive
from scenarios.workloads.blocks import SeenBlocks, count
from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, Corpus, Stream
from scenarios.workloads.readers.plausible import grain_s, shared_stamps

PERCENTILES = (5, 25, 50, 75, 95, 99)
TOOL, HUMAN = STARTERS.index("tool"), STARTERS.index("human")
TOOL_USE, END_TURN = STOPS.index("tool_use"), STOPS.index("end_turn")
IDLE_S = (60.0, 300.0, 3_600.0)


@dataclass(slots=True)
class _Columns:
    """Per-request columns over the whole corpus, collected stream by stream."""

    parts: dict[str, list[NDArray[Any]]] = field(default_factory=dict)  # Any: integers and floats

    def add(self, name: str, values: NDArray[Any]) -> None:
        self.parts.setdefault(name, []).append(values)

    def get(self, name: str) -> NDArray[np.float64]:
        parts = self.parts.get(name)
        return np.concatenate(parts).astype(np.float64) if parts else np.zeros(0)


def inspect(corpus: Corpus) -> dict[str, Any]:
    """Return the description as plain values, ready for JSON.

    Parameters
    ----------
    corpus : Corpus

    Returns
    -------
    dict
        `name`, `format`, `digest`, `source_sha256`, `scope`, `block_tokens`, counts, `models`, `quantiles` (of each
        marginal: p5 to p99, mean, max, n), `hit`, `new_tokens` (shares and breaks), `arrivals`, `repairs`, `warnings`.
    """
    columns = _Columns()
    sources: Counter[str] = Counter()
    events: Counter[str] = Counter()
    drops = 0
    for conversation, cached in derive.with_cached_tokens(corpus):
        _gather(columns, conversation, cached)
        for stream, hit in zip(conversation.streams, cached):
            fresh = (stream.prompt_tokens - hit).tolist()
            for name, new in zip(labels.label(stream), fresh):
                sources[name] += new
                events[name] += 1
            if stream.relation != "independent":
                drops += len(labels.large_drops(stream))
    streams = [stream for conversation in corpus.conversations for stream in conversation.streams]
    stamps = shared_stamps(corpus)
    doubts = [f"{entry.kind}: {entry.done}" for entry in corpus.repairs.entries.values() if entry.doubt]
    return {
        "name": corpus.name,
        "format": corpus.format,
        "digest": corpus.digest(),
        "source_sha256": corpus.source_sha256,
        "scope": corpus.scope,
        "block_tokens": sorted({c.block_tokens for c in corpus.conversations}),
        "conversations": len(corpus.conversations),
        "requests": corpus.requests,
        "streams": dict(sorted(Counter(stream.relation for stream in streams).items())),
        "models": sorted({m for c in corpus.conversations for m in c.models if m}),
        "quantiles": _quantiles(columns),
        "hit": _hit_ratios(corpus, columns),
        "new_tokens": _new_tokens(columns, sources, events, drops),
        "arrivals": _arrivals(corpus, stamps, columns),
        "repairs": corpus.repairs.rows(),
        "warnings": [*([idle] if stamps is not None and (idle := bursts.idle_start_warning(stamps)) else []), *doubts],
    }


def _gather(columns: _Columns, conversation: Conversation, cached: list[NDArray[np.int64]]) -> None:
    alone = conversation.streams[0].relation == "independent"
    columns.add("unique_tokens", np.array([_unique(conversation)]))
    if not alone:
        columns.add("requests_per_conversation", np.array([conversation.requests]))
        columns.add("duration_s", np.array([conversation.duration_s]))
        columns.add("first_prompt_tokens", conversation.streams[0].prompt_tokens[:1])
    for stream, hit in zip(conversation.streams, cached):
        columns.add("prompt_tokens", stream.prompt_tokens)
        columns.add("cached_tokens", hit)
        columns.add("new_tokens", stream.prompt_tokens - hit)
        columns.add("output_tokens", stream.output_tokens)
        columns.add("service_s", stream.service_s)
        if alone or len(stream) < 2:
            continue
        gaps = np.diff(stream.t_s)
        columns.add("gap_start_to_start_s", gaps)
        columns.add("hit_after_gap_tokens", hit[1:])
        tool, human = _triggers(stream)
        columns.add("think_after_tool_s", stream.think_s[1:][tool])
        columns.add("think_after_answer_s", stream.think_s[1:][human])
        columns.add("think_s", stream.think_s[1:])


def _unique(conversation: Conversation) -> int:
    seen = SeenBlocks()
    for stream in conversation.streams:
        for runs in stream.all_runs():
            seen.add(runs)
    return len(seen) * conversation.block_tokens


def _triggers(stream: Stream) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each request but the first whether a tool or a person triggered it.

    Decided by the stop reason of the previous answer; in a stream without stop reasons, by the request's input type.
    """
    if stream.stop.any():
        return stream.stop[:-1] == TOOL_USE, stream.stop[:-1] == END_TURN
    return stream.starter[1:] == TOOL, stream.starter[1:] == HUMAN


def describe(values: NDArray[np.float64]) -> dict[str, float | int]:
    """Return quantiles, mean, largest and count of the values that exist; empty where there are none."""
    known = values[~np.isnan(values)]
    if not len(known):
        return {}
    out: dict[str, float | int] = {
        f"p{p}": float(q) for p, q in zip(PERCENTILES, np.percentile(known, PERCENTILES), strict=True)
    }
    return out | {"mean": float(known.mean()), "max": float(known.max()), "n": len(known)}


def _quantiles(columns: _Columns) -> dict[str, dict[str, float | int]]:
    names = (
        *("requests_per_conversation", "prompt_tokens", "cached_tokens", "new_tokens", "output_tokens"),
        *("first_prompt_tokens", "gap_start_to_start_s", "think_after_tool_s", "think_after_answer_s", "service_s"),
        *("duration_s", "unique_tokens"),
    )
    described = {name: describe(columns.get(name)) for name in names}
    return {name: quantiles for name, quantiles in described.items() if quantiles}


def _hit_ratios(corpus: Corpus, columns: _Columns) -> dict[str, Any]:
    """Return the theoretical (infinite-cache) hit, in tokens and in blocks, and its share after long gaps."""
    prompt, cached = columns.get("prompt_tokens").sum(), columns.get("cached_tokens").sum()
    hit_tokens, gaps = columns.get("hit_after_gap_tokens"), columns.get("gap_start_to_start_s")
    blocks = sum(int(s.run_blocks.sum()) for c in corpus.conversations for s in c.streams)
    hit_blocks = sum(
        int(np.minimum(-(-hit // c.block_tokens), _sizes(s)).sum())
        for c, cached_columns in derive.with_cached_tokens(corpus)
        for s, hit in zip(c.streams, cached_columns)
    )
    return {
        "token_ratio": float(cached / prompt) if prompt else 0.0,
        "block_ratio": hit_blocks / blocks if blocks else 0.0,
        "wholly_cached_prompts": int((columns.get("new_tokens") == 0).sum()),
        "after_gap_ratio": {
            f"{int(s)}s": float(hit_tokens[gaps > s].sum() / cached) if cached else 0.0 for s in IDLE_S
        },
    }


def _sizes(stream: Stream) -> NDArray[np.int64]:
    return np.array([count(runs) for runs in stream.all_runs()], dtype=np.int64)


def _new_tokens(columns: _Columns, sources: Counter[str], events: Counter[str], drops: int) -> dict[str, Any]:
    """Return the sources of uncached tokens, and the share of requests that account for half of them."""
    total = sum(sources.values())
    new = np.sort(columns.get("new_tokens"))[::-1]
    half = int(np.searchsorted(np.cumsum(new), 0.5 * total)) + 1 if total else 0
    broken = {
        name: {"events": events[name], "mean_new_tokens": sources[name] / events[name]}
        for name in labels.BREAKS
        if events[name]
    }
    return {
        "tokens": int(total),
        "first_ratio": sources["first"] / total if total else 0.0,
        "breaks_ratio": sum(sources[name] for name in labels.BREAKS) / total if total else 0.0,
        "growth_ratio": sources["growth"] / total if total else 0.0,
        "breaks": broken,
        "large_drops": drops,
        "requests_for_half_ratio": half / len(new) if len(new) else 0.0,
    }


def _arrivals(corpus: Corpus, stamps: NDArray[np.float64] | None, columns: _Columns) -> dict[str, Any]:
    """Return rates and dispersions: on the shared clock, else medians over conversations on their own clocks."""
    if stamps is not None:
        ordered = np.sort(stamps)
        gaps, new = np.diff(ordered), columns.get("new_tokens").astype(np.int64)
        span_s = float(ordered[-1] - ordered[0])
        return {
            "clock": "shared",
            "span_s": span_s,
            "rate_per_s": (len(stamps) - 1) / span_s if span_s > 0.0 else None,
            "grain_s": grain_s(stamps),
            "gap_cv": bursts.gap_cv(stamps),
            "zero_gap_ratio": float((gaps == 0.0).mean()) if len(gaps) else 0.0,
            "dispersion": {f"{w:g}s": bursts.dispersion(stamps, w) for w in bursts.WIDTHS_S},
            "new_token_dispersion": {f"{w:g}s": bursts.token_dispersion(stamps, new, w) for w in bursts.WIDTHS_S},
        }
    stamps_by_conversation = [
        np.concatenate([s.t_s for s in c.streams]) for c in corpus.conversations if c.requests >= 3
    ]

    def median(values: list[float | None]) -> float | None:
        known = [v for v in values if v is not None]
        return float(np.median(known)) if known else None

    return {
        "clock": "each conversation its own; medians over conversations",
        "gap_cv": median([bursts.gap_cv(t) for t in stamps_by_conversation]),
        "dispersion": {
            f"{w:g}s": median([bursts.dispersion(t, w) for t in stamps_by_conversation]) for w in bursts.WIDTHS_S
        },
    }
