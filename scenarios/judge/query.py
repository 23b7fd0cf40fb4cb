"""Range queries to a Prometheus server, in as many requests as its limit of points asks for."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from scenarios.errors import UserError

# Prometheus refuses more than 11,000 points a series in one answer (web/api/v1/api.go).
MOST_POINTS = 10_000
MOST_REQUESTS = 200
ANSWER_S = 60.0
UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What is asked for: a query over the `since_s` seconds before now, every `step_s`; `token`: sent as a bearer's."""

    url: str
    query: str
    since_s: float
    step_s: float
    token: str | None = None


def seconds(text: str, option: str) -> float:
    """Return a span such as `6h`, `15s` or `1h30m` in seconds.

    Raises
    ------
    UserError
        It is none, or it is zero.
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|[smhdw])", text)
    span_s = sum(float(number) * UNITS_S[unit] for number, unit in parts)
    if "".join(number + unit for number, unit in parts) != text or not span_s > 0.0:
        raise UserError(f"{option} {text}: must be a span such as 15s, 30m, 6h or 1d")
    return span_s


def query_range(asked: Range) -> list[dict[str, Any]]:  # Any: what JSON holds
    """Return the series of a range query, as Prometheus states them: `metric` and `values`.

    Raises
    ------
    UserError
        No Prometheus answers there; it refuses the query; the query finds nothing.
    """
    if not re.match(r"https?://[^/\s]+", asked.url):
        raise UserError(f"--prometheus {asked.url}: must be an address such as http://127.0.0.1:9090")
    requests = asked.since_s / asked.step_s / MOST_POINTS
    if requests > MOST_REQUESTS:
        raise UserError(f"--step {asked.step_s:g}s: makes too many points over {asked.since_s:g} s; take a longer one")
    end_s = time.time()  # wall-clock: the server's series are dated
    end_s -= end_s % asked.step_s  # so that the same query again finds the same instants
    rows: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    start_s = end_s - asked.since_s
    while start_s <= end_s:
        last_s = min(end_s, start_s + (MOST_POINTS - 1) * asked.step_s)
        for series in _answer(asked, start_s, last_s):
            labels = tuple(sorted(series["metric"].items()))
            rows.setdefault(labels, {"metric": series["metric"], "values": []})["values"] += series["values"]
        start_s = last_s + asked.step_s
    if not rows:
        raise UserError(f"--query {asked.query}: finds no series in the last {asked.since_s:g} s at {asked.url}")
    return list(rows.values())


def _answer(asked: Range, start_s: float, end_s: float) -> list[dict[str, Any]]:
    fields = {"query": asked.query, "start": f"{start_s:.3f}", "end": f"{end_s:.3f}", "step": f"{asked.step_s:g}"}
    address = f"{asked.url.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(fields)}"
    headers = {} if asked.token is None else {"Authorization": f"Bearer {asked.token}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=ANSWER_S) as answer:
            content = answer.read()
    except urllib.error.HTTPError as error:
        raise UserError(f"--prometheus {asked.url}: answers {error.code}: {_refusal(error.read())}") from None
    except OSError as error:
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        raise UserError(f"--prometheus {asked.url}: cannot be reached: {why}") from None
    try:
        data = json.loads(content)["data"]
        series: list[dict[str, Any]] = data["result"]
        if data["resultType"] != "matrix" or not all({"metric", "values"} <= item.keys() for item in series):
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"--prometheus {asked.url}: does not answer as a Prometheus does") from None
    return series


def _refusal(content: bytes) -> str:
    """Return what Prometheus says of a query that it refuses."""
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return "without a reason that could be read"
