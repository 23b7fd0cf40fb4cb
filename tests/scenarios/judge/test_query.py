"""Series straight from a Prometheus server: what is asked, how long ranges are put together, what errors say."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from scenarios.errors import UserError
from scenarios.judge import judge_range
from scenarios.judge.query import MOST_POINTS, Range, query_range, seconds

Fields = dict[str, str]


@contextmanager
def prometheus(answer: Callable[[Fields], tuple[int, Any]]) -> Iterator[tuple[str, list[Fields]]]:
    """Serve range queries on loopback; yield the address, and what was asked."""
    asked: list[Fields] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parsed = urlparse(self.path)
            fields = {name: values[0] for name, values in parse_qs(parsed.query).items()}
            fields |= {"path": parsed.path, "authorization": self.headers.get("authorization", "")}
            asked.append(fields)
            status, body = answer(fields)
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def matrix(fields: Fields, **values: Callable[[float], float]) -> tuple[int, Any]:
    start_s, end_s, step_s = (float(fields[name]) for name in ("start", "end", "step"))
    instants = [start_s + k * step_s for k in range(int((end_s - start_s) / step_s + 1e-6) + 1)]
    result = [
        {"metric": {"__name__": "busy", "pod": pod}, "values": [[t, str(value(t))] for t in instants]}
        for pod, value in values.items()
    ]
    return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}


def swing(t: float) -> float:
    return 50.0 + 20.0 * math.sin(2 * math.pi * t / 120.0)


def test_each_series_of_a_query_is_judged_by_itself() -> None:
    with prometheus(lambda fields: matrix(fields, a=swing, b=lambda _: 5.0)) as (url, asked):
        judged = judge_range(Range(url=url, query="busy", since_s=3600.0, step_s=5.0, token="secret"))
    assert [series.name for series in judged] == ['busy{pod="a"}', 'busy{pod="b"}']
    assert judged[0].verdict.period_s == pytest.approx(120.0, rel=0.03)
    assert judged[1].verdict.verdict == "constant"
    (only,) = asked
    assert (only["path"], only["query"], only["step"]) == ("/api/v1/query_range", "busy", "5")
    assert only["authorization"] == "Bearer secret"


def test_a_long_range_is_asked_for_in_parts_that_join_without_gap_or_double() -> None:
    with prometheus(lambda fields: matrix(fields, a=lambda t: t)) as (url, asked):
        (series,) = query_range(Range(url=url, query="q", since_s=2.5 * MOST_POINTS, step_s=1.0))
    instants = [t for t, _ in series["values"]]
    assert len(asked) == 3
    assert len(instants) == 2.5 * MOST_POINTS + 1
    assert all(b - a == pytest.approx(1.0) for a, b in pairwise(instants))


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, {"status": "error", "error": "parse error at char 3"}, "answers 400: parse error at char 3"),
        (401, b"no", "answers 401: without a reason"),
        (200, b"<html>", "does not answer as a Prometheus does"),
        (200, {"status": "success", "data": {"resultType": "vector", "result": []}}, "does not answer as"),
        (200, {"status": "success", "data": {"resultType": "matrix", "result": []}}, "finds no series"),
    ],
)
def test_what_goes_wrong_is_said_in_one_line(status: int, body: Any, words: str) -> None:
    with prometheus(lambda _: (status, body)) as (url, _), pytest.raises(UserError, match=words) as raised:
        query_range(Range(url=url, query="q", since_s=60.0, step_s=1.0))
    assert "\n" not in str(raised.value)


def test_an_address_that_is_none_or_where_nobody_is_and_too_many_points_are_refused() -> None:
    def asked(url: str, step_s: float = 1.0) -> Range:
        return Range(url=url, query="q", since_s=86_400.0, step_s=step_s)

    with pytest.raises(UserError, match="must be an address"):
        query_range(asked("file:///etc/passwd"))
    with prometheus(lambda fields: matrix(fields)) as (url, _):
        pass
    with pytest.raises(UserError, match="cannot be reached"):
        query_range(asked(url))
    with pytest.raises(UserError, match="too many points"):
        query_range(asked(url, 0.001))


def test_spans_are_read_as_prometheus_writes_them() -> None:
    assert [seconds(text, "--since") for text in ("15s", "1h30m", "500ms", "2d")] == [15.0, 5400.0, 0.5, 172_800.0]
    for text in ("", "6", "h", "6 h", "-1s", "0s", "1y"):
        with pytest.raises(UserError, match="--since"):
            seconds(text, "--since")
