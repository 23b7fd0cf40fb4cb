"""What a request asks for: the JSON body of a completion, checked, as an `Ask`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

MOST_OUTPUT_TOKENS = 1_000_000


class RefusedAsk(Exception):
    """A request that cannot be served as it stands; `status` and `code` are those of the error response."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One completion that is asked for.

    `max_tokens` None: the server decides. `include_usage`: a stream ends with a chunk of usage. `given`: the body.
    """

    chat: bool
    model: str
    text: str
    max_tokens: int | None
    stream: bool
    include_usage: bool
    given: dict[str, object]


def read_ask(body: bytes, *, chat: bool) -> Ask:
    """Return what a body asks for; unknown fields are accepted.

    Raises
    ------
    RefusedAsk
        The body is no JSON object, or holds no prompt.
    """
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RefusedAsk(400, "invalid_json", f"the body is not valid JSON: {error}") from None
    if not isinstance(given, dict):
        raise RefusedAsk(400, "invalid_request", "the body must be a JSON object")
    options = given.get("stream_options")
    return Ask(
        chat=chat,
        model=str(given.get("model", "")),
        text=_messages(given) if chat else _prompt(given),
        max_tokens=_max_tokens(given),
        stream=bool(given.get("stream", False)),
        include_usage=isinstance(options, dict) and bool(options.get("include_usage", False)),
        given=given,
    )


def _max_tokens(given: Mapping[str, Any]) -> int | None:
    for key in ("max_completion_tokens", "max_tokens"):
        value = given.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_OUTPUT_TOKENS:
            raise RefusedAsk(400, "invalid_request", f"{key} must be a whole number of at most {MOST_OUTPUT_TOKENS}")
        return max(1, value)
    return None


def _prompt(given: Mapping[str, Any]) -> str:
    prompt = given.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str):
        prompt = prompt[0]
    if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
        prompt = " ".join(map(str, prompt))
    if not isinstance(prompt, str):
        raise RefusedAsk(400, "invalid_request", "prompt must be one text, or one list of token ids")
    return prompt


def _messages(given: Mapping[str, Any]) -> str:
    messages = given.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(message, dict) for message in messages):
        raise RefusedAsk(400, "invalid_request", "messages must be a list of at least one message")
    return "\n".join(text for message in messages for text in _texts(message.get("content")))


def _texts(content: Any) -> list[str]:  # Any: what JSON holds
    if isinstance(content, str):
        return [content]
    if isinstance(content, list):
        return [str(part["text"]) for part in content if isinstance(part, dict) and "text" in part]
    return []
