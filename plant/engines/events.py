"""What a stream of server-sent events says: its first content, its usage, and whether it ended as it should."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import orjson

# An event ends with an empty line, whichever way lines end.
EVENT = re.compile(rb".*?(?:\r\n\r\n|\n\n|\r\r)", re.DOTALL)


class Usage(NamedTuple):
    """Tokens as the engine counted them."""

    prompt_tokens: int
    output_tokens: int
    cached_tokens: int


def usage_of(given: Any) -> Usage | None:  # Any: what JSON holds
    """Return the usage in a chunk or in a whole answer, if it is there."""
    usage = given.get("usage") if isinstance(given, dict) else None
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return Usage(int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0), int(cached or 0))


class EventReader:
    """Reads a stream as it passes.

    Attributes
    ----------
    chunks : int
        Those with text; a role alone is none.
    usage : Usage or None
    done : bool
        The mark of the end has come.
    """

    def __init__(self, keep_usage: bool) -> None:
        self._keep_usage = keep_usage
        self._rest = b""
        self.chunks = 0
        self.done = False
        self.usage: Usage | None = None

    def feed(self, part: bytes) -> bytes:
        """Take in bytes, and return the whole events; a chunk of usage alone is left out where nobody asked for it."""
        text, end, kept = self._rest + part, 0, []
        for match in EVENT.finditer(text):
            end = match.end()
            event = match.group()
            if self._read(event):
                kept.append(event)
        self._rest = text[end:]
        return b"".join(kept)

    def rest(self) -> bytes:
        """Return what came after the last whole event."""
        return self._rest

    def _read(self, event: bytes) -> bool:
        """Note what an event says; return whether it is the client's."""
        line = event.strip()
        if not line.startswith(b"data:"):
            return True
        content = line[5:].strip()
        if content == b"[DONE]":
            self.done = True
            return True
        try:
            chunk = orjson.loads(content)
        except orjson.JSONDecodeError:
            return True
        if not isinstance(chunk, dict):
            return True
        choices = chunk.get("choices")
        self.usage = usage_of(chunk) or self.usage
        if isinstance(choices, list) and any(_has_text(choice) for choice in choices):
            self.chunks += 1
        return bool(choices) or self._keep_usage or "usage" not in chunk


def _has_text(choice: Any) -> bool:  # Any: what JSON holds
    if not isinstance(choice, dict):
        return False
    delta = choice.get("delta")
    if isinstance(delta, dict):
        return bool(delta.get("content") or delta.get("reasoning_content") or delta.get("tool_calls"))
    return bool(choice.get("text"))
