"""Classify how each prompt continues or breaks the previous prompt of its stream.

A request *breaks* its prefix when it keeps less than 90 % of the previous request's blocks (keep = common leading
blocks / blocks of the previous prompt; size = prompt / previous prompt, both in tokens). The first rule that
applies gives the label:

| label | rule |
|---|---|
| first | no request before it in the stream |
| growth | keep >= 0.9 (also a prompt without ids, or after one) |
| stalactite | size < 0.9, and within the next 3 requests one keeps >= 0.9 of the prompt before the drop |
| compaction | size <= 0.5 |
| shrink | 0.5 < size < 0.9 |
| rewrite | 0.9 <= size <= 1.1 and keep < 0.25 |
| rewind | 0.9 <= size <= 1.1 and keep >= 0.25 (a rewind, or an edit of something earlier) |
| break | size > 1.1: a break while growing |

The classes are those of the description of WEKA v8 (November 2026): 902 breaks in 49,334 requests. A stalactite is a
transient drop in the plot of prompt lengths.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scenarios.workloads import blocks
from scenarios.workloads.corpus import Stream

LABELS = ("first", "growth", "stalactite", "compaction", "shrink", "rewrite", "rewind", "break")
BREAKS = LABELS[2:]
KEEP_RATIO, RETURN_REQUESTS = 0.9, 3
DROP_TOKENS, PEAK_RATIO = 65_536, 0.75


def label(stream: Stream) -> list[str]:
    """Return the label of each request of a stream; independent rows are all `first`."""
    if stream.relation == "independent":
        return ["first"] * len(stream)
    runs = stream.all_runs()
    sizes = [blocks.count(chain) for chain in runs]
    prompts = stream.prompt_tokens.tolist()
    out = ["first"] * min(1, len(runs))
    for k in range(1, len(runs)):
        before = runs[k - 1]
        kept = blocks.common(before, runs[k]) / sizes[k - 1] if sizes[k - 1] else 1.0
        if kept >= KEEP_RATIO or not sizes[k]:
            out.append("growth")
            continue
        size = prompts[k] / prompts[k - 1]
        later = runs[k + 1 : k + 1 + RETURN_REQUESTS]
        returns = any(blocks.common(before, chain) >= KEEP_RATIO * sizes[k - 1] for chain in later)
        out.append(_break_label(size, kept, returns))
    return out


def _break_label(size: float, kept: float, returns: bool) -> str:
    if size < 0.9 and returns:
        return "stalactite"
    if size <= 0.5:
        return "compaction"
    if size < 0.9:
        return "shrink"
    if size > 1.1:
        return "break"
    return "rewrite" if kept < 0.25 else "rewind"


def large_drops(stream: Stream) -> NDArray[np.int64]:
    """Return the ordinals of compactions by prompt lengths alone, by TraceLab's rule, for traces without block ids.

    A drop of at least 64 k tokens, from at least 75 % of the stream's peak so far, without a return to 75 % of the
    length before it within 3 requests.
    """
    prompts = stream.prompt_tokens.tolist()
    ordinals = []
    peak = 0
    for k in range(1, len(prompts)):
        before = prompts[k - 1]
        peak = max(peak, before)
        later = prompts[k : k + RETURN_REQUESTS]
        if before - prompts[k] >= DROP_TOKENS and before >= PEAK_RATIO * peak and max(later) < PEAK_RATIO * before:
            ordinals.append(k)
    return np.array(ordinals, dtype=np.int64)
