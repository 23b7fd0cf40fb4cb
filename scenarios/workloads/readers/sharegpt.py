"""Read ShareGPT conversations: a JSON list or JSONL of {`id`, `conversations` [{`from`, `value`}]}.

A person's texts ("human", "user") are prompts, the model's ("gpt", "assistant", "chatgpt") answers; each prompt is the
history and the new text. There are no times: waits are 0 s and no clock is shared, so lanes and arriving sessions can
play it. Texts carry no token counts: four characters count as one token, and it is counted.
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

FORMAT = "sharegpt"
ANSWERS = ("gpt", "assistant", "chatgpt", "bing", "bard")


def mismatch(sample: Sample) -> str:
    """Return why these are not ShareGPT conversations, '' when they are."""
    reason = rows.missing_keys(sample.first, "conversations")
    if reason or isinstance(sample.first["conversations"], list):
        return reason
    return "its `conversations` is not a list"


def read(path: Path, options: ReadOptions) -> Corpus:
    """Read the conversations."""
    repairs = Repairs(options.on_error)
    conversations: list[Conversation] = []
    for at, row in rows.json_rows(path, repairs):
        name = f"{fields.name(row, 'id') or 'conversation'}#{len(conversations)}"
        try:
            conversations.append(_conversation(row.get("conversations"), name, at, repairs))
        except Skip:
            continue
    repairs.note("no clock", f"{path}", "waits are taken as 0 s; play it in lanes or as sessions")
    return rows.with_digest(Corpus(name=path.name, format=FORMAT, conversations=conversations, repairs=repairs), path)


def _conversation(messages: Any, name: str, at: str, repairs: Repairs) -> Conversation:
    stream, chain = StreamBuilder("", "root"), StatedPrefix()
    context_tokens = new_tokens = 0
    end_s = 0.0
    for k, message in enumerate(messages if isinstance(messages, list) else ()):
        place = f"{at}: conversations[{k}]"
        if not isinstance(message, dict) or not isinstance(message.get("value"), str):
            raise repairs.rejection("not a message", place, "an object with `from` and a text `value` was expected")
        tokens = fields.tokens_of_text(message["value"], place, repairs)
        if message.get("from") not in ANSWERS:
            new_tokens += tokens
            continue
        if not new_tokens:
            repairs.note("answer without a prompt", place, "passed over")
            continue
        prompt_tokens = context_tokens + new_tokens
        runs = chain.extend(prompt_tokens, context_tokens)
        stream.add(t_s=end_s, prompt_tokens=prompt_tokens, output_tokens=tokens, think_s=0.0, runs=runs)
        end_s += float(assumed_service_s(np.array([tokens]))[0])
        context_tokens, new_tokens = prompt_tokens + tokens, 0
    if not len(stream):
        raise repairs.rejection("conversation empty", at, "a prompt and its answer were expected")
    return Conversation(name=name, block_tokens=1, streams=(stream.build(),), start_s=None)
