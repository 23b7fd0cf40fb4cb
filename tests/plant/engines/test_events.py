"""A stream of events is read alike however its bytes are cut, and passes on untouched."""

from __future__ import annotations

from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.engines.events import EventReader, Usage
from plant.engines.exchange import Exchange
from plant.engines.upstream import read_metrics


def chunk(text: str | None, **more: object) -> bytes:
    delta = {"role": "assistant"} if text is None else {"content": text}
    return b"data: " + orjson.dumps({"choices": [{"index": 0, "delta": delta}], **more}) + b"\n\n"


USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}
LAST = b"data: " + orjson.dumps({"choices": [], "usage": USAGE}) + b"\n\n"
STREAM = chunk(None) + b": a comment\n\n" + chunk("a") + chunk("") + chunk("b") + LAST + b"data: [DONE]\n\n"


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=12), keep=st.booleans(), crlf=st.booleans())
def test_events_are_the_same_however_the_bytes_are_cut(cuts: list[int], keep: bool, crlf: bool) -> None:
    stream = STREAM.replace(b"\n", b"\r\n") if crlf else STREAM
    edges = sorted({0, len(stream), *cuts})
    reader = EventReader(keep_usage=keep)
    passed = b"".join(reader.feed(stream[a:b]) for a, b in pairwise(edges)) + reader.rest()
    last = LAST.replace(b"\n", b"\r\n") if crlf else LAST
    assert passed == (stream if keep else stream.replace(last, b""))
    assert (reader.chunks, reader.done, reader.usage) == (2, True, Usage(5, 7, 4))


def test_a_bare_error_or_a_cut_stream_is_not_done() -> None:
    for stream in (b'data: {"error": {"message": "no"}}\n\n', chunk("a"), chunk("a") + b"data: [DO"):
        reader = EventReader(keep_usage=True)
        assert reader.feed(stream) + reader.rest() == stream
        assert not reader.done


@pytest.mark.parametrize("stream", [True, False])
def test_usage_is_asked_for_in_a_stream_and_the_rest_of_the_body_stays(stream: bool) -> None:
    body: dict[str, object] = {"model": "m", "seed": 1, "stream_options": {"other": 2}}
    sent = orjson.loads(Exchange("/v1/completions", body, stream, False).request("theirs"))
    assert sent["model"] == "theirs"
    assert sent["seed"] == 1
    assert sent["stream_options"] == ({"other": 2, "include_usage": True} if stream else {"other": 2})
    assert body == {"model": "m", "seed": 1, "stream_options": {"other": 2}}


def test_metrics_are_summed_over_labels_and_what_is_no_number_is_passed_over() -> None:
    page = '# HELP x y\na:b{m="1"} 2\na:b{m="2",n="}"} 3e1\nc NaN-ish\nd 0.5 1700000000\n'
    assert read_metrics(page) == {"a:b": 32.0, "d": 0.5}
