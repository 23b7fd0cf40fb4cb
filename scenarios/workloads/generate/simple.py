"""Generate plain workloads: chats, questions over documents (RAG), and batches.

| preset | prompts [tokens] | answers [tokens] | waits |
|---|---|---|---|
| chat | median 700 at first; the history is kept and grows | median 129 | a person, median 60 s |
| rag | one turn: a shared system prompt, documents of which some are popular, a question | median 350 | none |
| batch | one turn, long in, long out, nothing shared | median 1,000 | none |

Azure: Patel et al., "Splitwise", ISCA 2024 (prompts: median 1,020, p95 4,083; answers: median 129, p95 451). The RAG
lengths follow the Mooncake conversation set (prompts: median 6,909, p95 39,551; answers: median 350, p95 698; Qin et
al., FAST 2025). The rest is chosen, not measured.
"""

from __future__ import annotations

import numpy as np

from scenarios.workloads.blocks import Run, join
from scenarios.workloads.corpus import STARTERS, STOPS, Conversation, StreamBuilder
from scenarios.workloads.generate.tables import Table

BLOCK_TOKENS = 64
HUMAN, ANSWER = STARTERS.index("human"), STOPS.index("end_turn")

CHAT_TURNS = Table(1, (1, 1.5, 3, 6, 15, 30), 60)
CHAT_FIRST_TOKENS = Table(40, (80, 250, 700, 1_400, 3_600, 6_000), 14_000)
CHAT_MESSAGE_TOKENS = Table(8, (15, 40, 90, 220, 900, 2_500), 6_000)
CHAT_OUTPUT_TOKENS = Table(1, (10, 60, 129, 260, 451, 700), 1_000)
CHAT_THINK_S = Table(3, (8, 25, 60, 150, 900, 3_600), 14_400)
RAG_PROMPT_TOKENS = Table(300, (1_200, 3_500, 6_909, 13_000, 39_551, 80_000), 126_195)
RAG_OUTPUT_TOKENS = Table(1, (20, 200, 350, 480, 698, 1_200), 2_000)
BATCH_PROMPT_TOKENS = Table(200, (600, 2_000, 4_000, 8_000, 24_000, 48_000), 100_000)
BATCH_OUTPUT_TOKENS = Table(50, (200, 600, 1_000, 1_800, 4_000, 8_000), 16_000)

RAG_SYSTEM_TOKENS, RAG_DOCUMENT_BLOCKS, RAG_DOCUMENTS = 1_024, 32, 400


def chat(name: str, rng: np.random.Generator) -> Conversation:
    """Generate a chat: each prompt is the history and a new message."""
    turns = max(1, round(float(CHAT_TURNS.draw(rng.random()))))
    output = np.maximum(1, CHAT_OUTPUT_TOKENS.draw(rng.random(turns)).astype(np.int64)).tolist()
    message = CHAT_MESSAGE_TOKENS.draw(rng.random(turns)).astype(np.int64).tolist()
    think = CHAT_THINK_S.draw(rng.random(turns)).tolist()
    prompt = int(CHAT_FIRST_TOKENS.draw(rng.random()))
    stream = StreamBuilder("", "root")
    t_s, end_s = 0.0, 0.0
    for k in range(turns):
        if k:
            prompt += output[k - 1] + message[k]
            t_s = end_s + think[k]
        service_s = round(0.4 + 0.02 * output[k], 3)
        _add(stream, t_s, prompt, output[k], think[k] if k else 0.0, service_s, [(1, prompt // BLOCK_TOKENS)])
        end_s = t_s + service_s
    return Conversation(name=name, block_tokens=BLOCK_TOKENS, streams=(stream.build(),), models=("generated",))


def rag(name: str, rng: np.random.Generator) -> Conversation:
    """Generate one question over documents; a popular first document is shared, by its position after the system
    prompt.

    The system prompt is the shared prefix. A prefix cache can reuse a document only where all before it is equal, so
    only the first one after the system prompt is ever shared: it is given as part of the stream's prefix.
    """
    prompt = max(RAG_SYSTEM_TOKENS + 128, int(RAG_PROMPT_TOKENS.draw(rng.random())))
    popular = int(rng.zipf(1.3))
    stream = StreamBuilder("", "root")
    stream.system_tokens = RAG_SYSTEM_TOKENS
    if popular <= RAG_DOCUMENTS and prompt > RAG_SYSTEM_TOKENS + (RAG_DOCUMENT_BLOCKS + 1) * BLOCK_TOKENS:
        # The tool length names the document, and is its length: documents of one length would pass for one another.
        stream.tool_tokens = RAG_DOCUMENT_BLOCKS * BLOCK_TOKENS - popular
    output = max(1, int(RAG_OUTPUT_TOKENS.draw(rng.random())))
    _add(stream, 0.0, prompt, output, 0.0, round(0.4 + 0.02 * output, 3), [(1, prompt // BLOCK_TOKENS)])
    return Conversation(name=name, block_tokens=BLOCK_TOKENS, streams=(stream.build(),), models=("generated",))


def batch(name: str, rng: np.random.Generator) -> Conversation:
    """Generate one request of a batch: no shared prefix, no think time."""
    prompt = int(BATCH_PROMPT_TOKENS.draw(rng.random()))
    output = max(1, int(BATCH_OUTPUT_TOKENS.draw(rng.random())))
    stream = StreamBuilder("", "root")
    _add(stream, 0.0, prompt, output, 0.0, round(0.4 + 0.02 * output, 3), [(1, prompt // BLOCK_TOKENS)])
    return Conversation(name=name, block_tokens=BLOCK_TOKENS, streams=(stream.build(),), models=("generated",))


def _add(
    stream: StreamBuilder,
    t_s: float,
    prompt_tokens: int,
    output_tokens: int,
    think_s: float,
    service_s: float,
    runs: list[Run],
) -> None:
    stream.add(
        t_s=t_s,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        think_s=think_s,
        service_s=service_s,
        runs=[run for run in join(runs) if run[1] > 0],
        stop=ANSWER,
        starter=HUMAN,
    )
