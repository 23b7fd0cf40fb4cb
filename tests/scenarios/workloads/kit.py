"""Helpers of the workload tests: a clock on a plain heap, a plant of fixed service times, small traces."""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.turn import ClassName, TurnView
from plant.hidden_turns import HiddenTurn, HiddenTurns
from scenarios.workloads.corpus import Corpus
from scenarios.workloads.player import SourceContext
from tests.paths import TRACES


def trace(*parts: str) -> Path:
    """Return a recorded trace beside the repository, or skip the test."""
    path = TRACES.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the recorded traces are not here: {path}")
    return path


class HeapClock:
    """`now`, `at` and `cancel_at` of a Clock on a heap; equal times in the order scheduled."""

    def __init__(self) -> None:
        self._heap: list[list[Any]] = []
        self._sequence = itertools.count()
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def at(self, when_s: float, fn: Callable[[Any], object], arg: object, priority: int = 0) -> list[Any]:
        entry = [max(when_s, self._now), priority, next(self._sequence), fn, arg]
        heapq.heappush(self._heap, entry)
        return entry

    def cancel_at(self, entry: list[Any]) -> None:
        entry[3] = None

    def run(self, until_s: float = float("inf"), events: int = 2_000_000) -> None:
        for _ in range(events):
            if not self._heap or self._heap[0][0] > until_s:
                if until_s < float("inf"):
                    self._now = max(self._now, until_s)
                return
            when, _, _, fn, arg = heapq.heappop(self._heap)
            self._now = when
            if fn is not None:
                fn(arg)
        raise AssertionError("the clock still has events")


class Bench:
    """A source on a clock, with a plant that takes `service_s(turn, hidden)` for every turn and logs the turns."""

    def __init__(self, service_s: Callable[[TurnView, HiddenTurn], float] | float = 1.0, draws: int = 0) -> None:
        self.clock = HeapClock()
        self.hidden_turns = HiddenTurns()
        self.stage = SourceContext(
            clock=self.clock,  # type: ignore[arg-type]  # the part of a Clock that sources use
            hidden_turns=self.hidden_turns,
            births=itertools.count(),
            class_name=ClassName("agent"),
            draws=draws,
        )
        self.service = service_s if callable(service_s) else lambda turn, hidden: service_s
        self.turns: list[TurnView] = []
        self.hidden: list[HiddenTurn] = []
        self.ends: dict[int, float] = {}
        self.outcomes: dict[int, str] = {}
        self.in_flight = 0
        self.most_in_flight = 0
        self.source: Any = None

    def arrive(self, turn: TurnView) -> None:
        hidden = self.hidden_turns.pop(turn.turn_id)
        self.turns.append(turn)
        self.hidden.append(hidden)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.clock.at(self.clock.now() + self.service(turn, hidden), self._end, turn)

    def _end(self, turn: TurnView) -> None:
        self.in_flight -= 1
        self.ends[turn.turn_id] = self.clock.now()
        self.source.ended(turn.turn_id, self.clock.now(), self.outcomes.get(len(self.ends) - 1, "retired"))

    def play(self, source: Any, until_s: float = float("inf")) -> list[TurnView]:
        self.source = source
        source.start(self.arrive)
        self.clock.run(until_s)
        return self.turns


def row(t: float, prompt: int, out: int = 10, first: int = 1, **more: Any) -> dict[str, Any]:
    """Return one Weka request whose blocks are consecutive from `first`."""
    blocks = list(range(first, first + prompt // 64))
    base = {"t": t, "type": "n", "in": prompt, "out": out, "hash_ids": blocks, "api_time": 2.0, "think_time": 1.0}
    return base | {"stop": "tool_use", "model": "m"} | more


def conversation(requests: list[Any], name: str = "c", **more: Any) -> dict[str, Any]:
    """Return one Weka conversation."""
    return {"id": name, "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": requests} | more


def written(folder: Path, *conversations: Any, name: str = "traces.jsonl") -> Path:
    """Write conversations as JSONL and return the path."""
    path = folder / name
    path.write_text("".join(json.dumps(c) + "\n" for c in conversations), encoding="utf-8")
    return path


def jsonl(folder: Path, *rows: Any, name: str = "t.jsonl") -> Path:
    """Write rows as JSONL and return the path."""
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def text(folder: Path, content: str, name: str = "t.csv") -> Path:
    """Write a text file and return the path."""
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def kinds(corpus: Corpus) -> dict[str, int]:
    """Return the counts of defects and notes by kind."""
    return {e.kind: e.count for e in corpus.repairs.entries.values()}


def mooncake(t: float | None, length: int, ids: list[int], **more: Any) -> dict[str, Any]:
    """Return one Mooncake row; `t` in milliseconds."""
    base = {"input_length": length, "output_length": 20, "hash_ids": ids} | more
    return base if t is None else {"timestamp": t} | base
