"""Read AIPerf multi-turn data sets: JSONL, one conversation per line.

`session_id` (optional), `turns` [{`text` or `texts`, `delay` [ms after the previous turn ENDS], `timestamp` [ms],
`role`, `output_length` [tokens]}]. Texts carry no token counts: four characters count as one token, and an absent
`output_length` as 128 tokens; both are counted as notes. Each prompt is the history and the new text. Source: AIPerf's
documentation of `multi_turn` data sets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from scenarios.workloads.corpus import Conversation, Corpus, StreamBuilder, assumed_service_s
from scenarios.workloads.readers import fields, rows
from scenarios.workloads.readers.rows import ReadOptions, Sample
from scenarios.workloads.readers.synthetic_blocks import StatedPrefix
from scenarios.workloads.repairs import Repairs, Skip

FORMAT = "aiperf"
CHARACTERS_PER_TOKEN, ASSUMED_OUTPUT_TOKENS = 4, 128


def mismatch(sample: Sample) -> str:
    """Return why this is not an AIPerf multi-turn set, '' when it is."""
    reason = rows.missing_keys(sample.first, "turns")
    return reason or ("" if isinstance(sample.first["turns"], list) else "its `turns` is not a list")


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the conversations."""
    repairs = Repairs(options.on_error)
    conversations: dict[str, Conversation] = {}
    for at, row in rows.json_rows(path, repairs):
        try:
            name = str(row.get("session_id") or f"line {len(conversations) + 1}")
            if name in conversations:
                repairs.repair("duplicate session id", at, f"{name!r} appears twice", "the second is left out")
                continue
            conversations[name] = _conversation(row, name, at, repairs)
        except Skip:
            continue
    return rows.with_digest(
        Corpus(name=path.name, format=FORMAT, conversations=list(conversations.values()), repairs=repairs), path
    )


def _conversation(row: dict[str, Any], name: str, at: str, repairs: Repairs) -> Conversation:
    turns = row.get("turns")
    if not isinstance(turns, list) or not turns:
        raise repairs.rejection("conversation empty", f"{at}: turns", "a list of at least one turn was expected")
    stream, chain = StreamBuilder("", "root"), StatedPrefix()
    context_tokens, end_s = 0, 0.0
    start_s = fields.seconds(turns[0], "timestamp", f"{at}: turns[0]", repairs, 1e-3)
    for k, turn in enumerate(turns):
        place = f"{at}: turns[{k}]"
        new_tokens = _tokens(turn, place, repairs)
        if turn.get("output_length") is None:
            repairs.note("output_length absent", place, f"taken as {ASSUMED_OUTPUT_TOKENS} tokens")
        output_tokens = fields.output({"output_length": ASSUMED_OUTPUT_TOKENS, **turn}, "output_length", place, repairs)
        stamp_s = fields.seconds(turn, "timestamp", place, repairs, 1e-3)
        delay_s = fields.seconds(turn, "delay", place, repairs, 1e-3)
        if k and stamp_s is None and delay_s is None:
            repairs.note("wait absent", place, "taken as 0 s")
        t_s = stamp_s - (start_s or 0.0) if stamp_s is not None and delay_s is None else end_s + (delay_s or 0.0)
        prompt_tokens = context_tokens + new_tokens
        stream.add(
            t_s=t_s if k else 0.0,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            think_s=None if stamp_s is not None and delay_s is None else delay_s or 0.0,
            runs=chain.extend(prompt_tokens, context_tokens),
        )
        context_tokens = prompt_tokens + output_tokens
        end_s = t_s + float(assumed_service_s(np.array([output_tokens]))[0])
    return Conversation(name=name, block_tokens=1, streams=(stream.build(),), start_s=start_s)


def _tokens(turn: Any, at: str, repairs: Repairs) -> int:
    texts = [turn.get("text"), *(turn.get("texts") or ())] if isinstance(turn, dict) else []
    characters = sum(len(t if isinstance(t, str) else str(t.get("contents", t))) for t in texts if t is not None)
    if not characters:
        raise repairs.rejection("turn without text", at, "`text` or `texts` was expected")
    repairs.note("lengths from characters", at, f"{CHARACTERS_PER_TOKEN} characters taken for a token")
    return max(1, characters // CHARACTERS_PER_TOKEN)
