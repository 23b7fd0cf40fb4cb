"""The bytes of answers in OpenAI's format: chunks of a stream, whole completions, errors."""

from __future__ import annotations

from typing import Any

import orjson

from scenarios.serve.replies import Reply

DONE = b"data: [DONE]\n\n"
# A token of the modelled answer is one word, so that a client that counts words counts tokens.
WORDS = (
    "steady",
    "flow",
    "keeps",
    "every",
    "slot",
    "fed",
    "while",
    "work",
    "waits",
    "in",
    "line",
    "for",
    "its",
    "turn",
)


def word(turn_id: int, k: int) -> str:
    """Return token k of a turn's answer: a word, and the space before it."""
    text = WORDS[(turn_id * 7 + k) % len(WORDS)]
    return f" {text}" if k else text


class Format:
    """The bytes of one answer.

    Parameters
    ----------
    chat : bool
        Chat completions, or plain ones.
    model : str
    reply : Reply
    created_s : int
        Seconds since 1970.
    """

    def __init__(self, *, chat: bool, model: str, reply: Reply, created_s: int) -> None:
        self._chat, self._reply = chat, reply
        kind = "chat.completion" if chat else "text_completion"
        self._common: dict[str, Any] = {
            "id": f"{'chatcmpl' if chat else 'cmpl'}-{reply.turn_id}",
            "object": f"{kind}.chunk" if chat else kind,
            "created": created_s,
            "model": model,
        }
        # One chunk with a mark in the place of its text; every other one is these bytes around a text of plain words.
        before, after = self._chunk("\0", None).split(b"\\u0000")
        self._before, self._after = before, after

    def role(self) -> bytes:
        """Return the first chunk of a chat, which names the role and holds no text; nothing for plain completions."""
        if not self._chat:
            return b""
        return self._event({"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None})

    def tokens(self, first: int, end: int) -> bytes:
        """Return the chunks of tokens first .. end - 1, one each."""
        reply, last = self._reply, self._reply.output_tokens - 1
        parts = [self._before + word(reply.turn_id, k).encode() + self._after for k in range(first, min(end, last))]
        if end > last:
            parts.append(self._chunk(word(reply.turn_id, last), reply.finish_reason))
        return b"".join(parts)

    def usage_chunk(self) -> bytes:
        """Return the chunk of usage that ends a stream where the client asked for it."""
        return b"data: " + orjson.dumps({**self._common, "choices": [], "usage": self.usage()}) + b"\n\n"

    def in_one_reply(self) -> bytes:
        """Return the body of an answer that is not streamed."""
        reply = self._reply
        text = "".join(word(reply.turn_id, k) for k in range(reply.output_tokens))
        choice: dict[str, Any] = {"index": 0, "logprobs": None, "finish_reason": reply.finish_reason}
        if self._chat:
            choice["message"] = {"role": "assistant", "content": text}
            return orjson.dumps(
                {**self._common, "object": "chat.completion", "choices": [choice], "usage": self.usage()}
            )
        return orjson.dumps({**self._common, "choices": [{**choice, "text": text}], "usage": self.usage()})

    def usage(self) -> dict[str, Any]:
        """Return the tokens of prompt and answer, and the cached part of the prompt."""
        reply = self._reply
        return {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.output_tokens,
            "total_tokens": reply.prompt_tokens + reply.output_tokens,
            "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        }

    def _chunk(self, text: str, finish_reason: str | None) -> bytes:
        if self._chat:
            return self._event({"index": 0, "delta": {"content": text}, "finish_reason": finish_reason})
        return self._event({"index": 0, "text": text, "logprobs": None, "finish_reason": finish_reason})

    def _event(self, choice: dict[str, Any]) -> bytes:
        return b"data: " + orjson.dumps({**self._common, "choices": [choice]}) + b"\n\n"


def error_body(status: int, code: str, message: str) -> bytes:
    """Return the body of an error response."""
    kind = "invalid_request_error" if status < 429 else "server_error"
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def error_event(code: str, message: str) -> bytes:
    """Return an error inside a stream: an event of its own, which no client takes for a chunk."""
    return b"event: error\ndata: " + error_body(500, code, message) + b"\n\n"
