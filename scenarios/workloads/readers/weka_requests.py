"""Requests of Weka conversations: one row to one request, requests sent twice, and the conversation's first stamp."""

from __future__ import annotations

from typing import Any

import numpy as np

from scenarios.workloads.corpus import STARTERS, STOPS, StreamBuilder
from scenarios.workloads.readers import fields
from scenarios.workloads.readers.block_ids import BlockIds
from scenarios.workloads.readers.rows import ReadOptions
from scenarios.workloads.repairs import Repairs

STOP_CODE = {"": 0, "tool_use": 1, "end_turn": 2, "max_tokens": 3}
TOLERANCE_S = 1.0
"""Tolerance of comparisons between clocks (WEKA v8 rounds the stamps of root requests to seconds)."""


class RequestReader:
    """Convert rows to requests of a stream and validate them."""

    def __init__(
        self, repairs: Repairs, ids: BlockIds, models: dict[str, int], options: ReadOptions, first_s: float
    ) -> None:
        self.repairs = repairs
        self.options = options
        self.ids = ids
        self.models = models
        self.first_s = first_s
        self.unit_s = options.unit_s(1.0)

    def add(self, stream: StreamBuilder, row: Any, at: str, base_s: float) -> None:
        """Append one request; `base_s` is added to its time."""
        repairs = self.repairs
        if not isinstance(row, dict):
            raise repairs.rejection("not a request", at, "an object was expected")
        prompt_tokens = fields.integer(row, "in", at, repairs, 1)
        output_tokens = fields.output(row, "out", at, repairs)
        runs = self.ids.runs(row, at, prompt_tokens)
        stop = row.get("stop") or ""
        types = row.get("input_types") or ()
        starter = 0
        if len(stream) and types:
            starter = STARTERS.index("tool" if "tool_result" in types else "human")
        before_s = stream.last_t_s
        t_s = self._start_s(stream, row, at, base_s)
        stream.add(
            t_s=t_s,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            think_s=self._think_s(row, at, t_s - before_s),
            service_s=self._wait_s(row, "api_time", at),
            runs=runs,
            stop=STOP_CODE.get(stop, STOPS.index("other")),
            starter=starter,
            model=self.models.setdefault(str(row.get("model", "")), len(self.models)),
        )

    def _start_s(self, stream: StreamBuilder, row: dict[str, Any], at: str, base_s: float) -> float:
        """Return the start on the conversation's clock; `base_s` is what the stated time counts from."""
        t_s = fields.seconds(row, "t", at, self.repairs, self.unit_s)
        if t_s is None:
            raise self.repairs.rejection("t missing", f"{at}: t", "missing; seconds from the start were expected")
        if t_s < 0.0:
            self.repairs.repair("time negative", f"{at}: t", f"{t_s} s lies before the start", "taken as 0 s")
            t_s = 0.0
        t_s += base_s
        before = stream.last_t_s
        if t_s < before:
            self.repairs.repair(
                "time going backwards", f"{at}: t", f"{t_s} s after {before} s", "taken as the time before it"
            )
            t_s = before
        stream.last_t_s = t_s
        return t_s

    def _think_s(self, row: dict[str, Any], at: str, interval_s: float) -> float | None:
        """Return the think time, or None where it cannot be the wait since the previous request's end.

        After a request without `api_time`, producers count it from an earlier end: it then exceeds the interval between
        the starts, and replaying it would lengthen the session severalfold.
        """
        think_s = self._wait_s(row, "think_time", at)
        if think_s is not None and think_s > interval_s + TOLERANCE_S:
            kind = "think_time longer than the interval between the starts"
            if self.options.stated_thinks:
                self.repairs.note(kind, at, "played as stated, as asked: the session takes longer than recorded")
                return think_s
            self.repairs.note(kind, at, "taken as missing: the wait is derived from the starts")
            return None
        return think_s

    def _wait_s(self, row: dict[str, Any], key: str, at: str) -> float | None:
        if row.get(key) is None:
            self.repairs.note(f"{key} absent", at, "left missing: derived from the starts around it")
        return fields.wait(row, key, at, self.repairs, self.unit_s)


def first_stamp_s(requests: list[Any], at: str, repairs: Repairs, options: ReadOptions) -> float:
    """Return the conversation's first stamp: times count from it, so that no play waits for it."""
    stamps = [row.get("t") for row in requests if isinstance(row, dict)]
    known = [t for t in stamps if isinstance(t, int | float) and not isinstance(t, bool)]
    first = min(known, default=0.0)
    if not 0.0 < first < float("inf"):
        return 0.0
    repairs.note("first stamp later than 0 s", at, "times count from it")
    return float(first) * options.unit_s(1.0)


def _same(request: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two requests have the same prompt; long lines hold their ids as arrays."""
    ids, others = request.get("hash_ids"), other.get("hash_ids")
    if isinstance(ids, np.ndarray) and isinstance(others, np.ndarray):
        return request.get("in") == other.get("in") and np.array_equal(ids, others)
    return request.get("in") == other.get("in") and type(ids) is type(others) and bool(ids == others)


def without_doubles(requests: list[Any], at: str, repairs: Repairs, drop: bool) -> list[Any]:
    """Count requests sent twice, streamed and then plain with the same blocks, and drop the second where asked.

    They double the load and inflate the cache hit.
    """
    out: list[Any] = []
    before: dict[str, Any] = {}
    for k, row in enumerate(requests):
        row_before, before = before, row if isinstance(row, dict) else {}
        streamed_first = before.get("type") == "n" and row_before.get("type") == "s"
        if streamed_first and _same(before, row_before):
            done = "the second is left out" if drop else "kept: it doubles the load, see `drop_doubles`"
            repairs.note("same prompt sent twice, streamed and plain", f"{at}: requests[{k}]", done)
            if drop:
                continue
        out.append(row)
    return out
