"""Series in the JSON that monitoring systems answer with: Prometheus range queries, Grafana frames, Datadog."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.errors import UserError
from scenarios.verdict.types import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A series of an answer: its labels (`__name__` among them), instants in seconds and values."""

    labels: Mapping[str, str]
    t_s: Floats
    values: Floats


def answered(path: Path, text: str) -> list[tuple[str, Floats, Floats]]:
    """Return name, instants and values of each series of an answer.

    Raises
    ------
    UserError
        When the text is not the answer of a range query, or tells an error of its own.
    """
    try:
        answer = json.loads(text)
        if isinstance(answer, Mapping) and answer.get("status") == "error":
            raise UserError(
                f"{path}: Prometheus answered with an error: {answer.get('error', answer.get('errorType'))}"
            )
        return named(answer)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise UserError(
            f"{path}: not the answer of a Prometheus range query (a `matrix` under data.result, each with values), "
            "nor of Grafana (results.A.frames) or Datadog (series with a pointlist)"
        ) from None


def named(answer: Any) -> list[tuple[str, Floats, Floats]]:  # Any: what JSON holds
    """Return name, instants and values of each series of a parsed answer; errors as those of a wrong shape."""
    series = list(_series(answer))
    shared = set.intersection(*({*stream.labels.items()} for stream in series)) if len(series) > 1 else set()
    return [(_name(stream.labels, shared), stream.t_s, stream.values) for stream in series]


def _series(answer: Any) -> Iterator[Answered]:
    if isinstance(answer, list):  # several queries in one file
        for entry in answer:
            yield from _series(entry)
        return
    if "results" in answer:
        for query in answer["results"].values():
            if query.get("error"):
                raise UserError(f"Grafana answered with an error: {query['error']}")
            for frame in query["frames"]:
                yield from _frame(frame)
        return
    if "series" in answer:
        for entry in answer["series"]:
            points = np.array([[np.nan if v is None else float(v) for v in point] for point in entry["pointlist"]])
            scope = dict(part.split(":", 1) for part in str(entry.get("scope", "")).split(",") if ":" in part)
            yield Answered(
                labels={"__name__": entry.get("metric", ""), **scope}, t_s=points[:, 0] / 1e3, values=points[:, 1]
            )
        return
    data = answer.get("data", answer)
    if data.get("resultType") in ("vector", "scalar"):
        raise UserError("an instant query holds one value a series: ask with query_range, a start, an end and a step")
    for result in data["result"]:
        pairs = np.array([[float(t), float(v)] for t, v in result["values"]])
        if len(pairs):
            yield Answered(labels=dict(result["metric"]), t_s=pairs[:, 0], values=pairs[:, 1])


def _frame(frame: Mapping[str, Any]) -> Iterator[Answered]:
    fields, columns = frame["schema"]["fields"], frame["data"]["values"]
    clock = next(k for k, field in enumerate(fields) if field.get("type") == "time")
    at = np.asarray(columns[clock], dtype=np.float64) / 1e3
    for k, field in enumerate(fields):
        if field.get("type") == "number":
            values = np.array([np.nan if v is None else float(v) for v in columns[k]])
            name = field.get("config", {}).get("displayNameFromDS") or field.get("name", "series")
            yield Answered(labels={"__name__": name, **field.get("labels", {})}, t_s=at, values=values)


def _name(labels: Mapping[str, str], shared: set[tuple[str, str]]) -> str:
    # Only what tells the series apart, as Prometheus itself would write it.
    name = labels.get("__name__", "")
    distinct = [
        (key, value) for key, value in sorted(labels.items()) if key != "__name__" and (key, value) not in shared
    ]
    shown = ",".join(f'{key}="{value}"' for key, value in distinct)
    return f"{name}{{{shown}}}" if shown else name or "series"
