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
            name = fields.name(row, "session_id") or f"line {len(conversations) + 1}"
            if name in conversations:
                repairs.repair("duplicate session id", at, f"{name!r} appears twice", "the second is left out")
                continue
            conversations[name] = _conversation(row, name, at, repairs, options.unit_s(1e-3))
        except Skip:
            continue
    return rows.with_digest(
        Corpus(name=path.name, format=FORMAT, conversations=list(conversations.values()), repairs=repairs), path
    )


def _conversation(row: dict[str, Any], name: str, at: str, repairs: Repairs, unit_s: float) -> Conversation:
    turns = row.get("turns")
    if not isinstance(turns, list) or not turns:
        raise repairs.rejection("conversation empty", f"{at}: turns", "a list of at least one turn was expected")
    stream, chain = StreamBuilder("", "root"), StatedPrefix()
    context_tokens, end_s = 0, 0.0
    start_s: float | None = None
    for k, (place, turn, stamp_s) in enumerate(_in_time_order(turns, at, repairs, unit_s)):
        start_s = stamp_s if k == 0 else start_s
        new_tokens = _tokens(turn, place, repairs)
        output_tokens = fields.output_or_assumed(turn, "output_length", place, repairs)
        delay_s = fields.wait(turn, "delay", place, repairs, unit_s)
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


def _in_time_order(
    turns: list[Any], at: str, repairs: Repairs, unit_s: float
) -> list[tuple[str, dict[str, Any], float | None]]:
    """Return (place, turn, stamp) of the turns by stamp; a turn without one stays behind the turn above it."""
    out: list[tuple[float, tuple[str, dict[str, Any], float | None]]] = []
    latest_s = stamp_s = float("-inf")
    for k, turn in enumerate(turns):
        place = f"{at}: turns[{k}]"
        if not isinstance(turn, dict):
            raise repairs.rejection("not a turn", place, "an object was expected")
        stated_s = fields.seconds(turn, "timestamp", place, repairs, unit_s)
        stamp_s = stamp_s if stated_s is None else stated_s
        if stamp_s < latest_s and stated_s is not None:
            problem = f"{stamp_s:g} s after {latest_s:g} s in one session"
            repairs.repair("time going backwards", place, problem, "sorted by time stamp")
        latest_s = max(latest_s, stamp_s)
        out.append((stamp_s, (place, turn, stated_s)))
    return [entry for _, entry in sorted(out, key=lambda entry: entry[0])]


def _tokens(turn: dict[str, Any], at: str, repairs: Repairs) -> int:
    texts = [turn.get("text"), *(turn.get("texts") or ())]
    joined = "".join(t if isinstance(t, str) else _contents(t) for t in texts if t is not None)
    if not joined:
        raise repairs.rejection("turn without text", at, "`text` or `texts` was expected")
    return fields.tokens_of_text(joined, at, repairs)


def _contents(text: Any) -> str:
    contents = text.get("contents", text) if isinstance(text, dict) else text
    return "".join(str(part) for part in contents) if isinstance(contents, list) else str(contents)
