"""The in-memory form of every trace: a corpus of conversations, each of one or more streams of requests.

Times are seconds, lengths are tokens. A *conversation* is a session tree: its root stream and the streams of its
sub-agents. A request's `prompt_tokens` INCLUDE the part that a cache could supply; cached and new tokens are
not stored, they are derived from the block ids (`derive`). A missing time is NaN, which is not zero.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scenarios.workloads.blocks import Run, runs_of
from scenarios.workloads.repairs import Repairs

Relation = Literal["root", "spawn", "background", "independent"]
"""root: the conversation itself. spawn: a sub-agent that its parent waits for. background: one that no request waits
for. independent: rows that share only a file; each is a single turn, replayed by its time stamp."""

STOPS = ("", "tool_use", "end_turn", "max_tokens", "other")
"""How an answer ended; the index is what a stream stores. The empty string: not recorded."""
STARTERS = ("", "tool", "human")
"""What triggered a request: a tool's result, or a person's message. The empty string: not recorded."""

Wait = tuple[int, int]
"""(stream, ordinal) of a request that must have ended first."""


ASSUMED_BASE_S, ASSUMED_PER_TOKEN_S = 1.69, 0.01457
"""Fitted on 710 recorded conversations (WEKA v8, Opus requests); used where a trace has no service times."""


def assumed_service_s(output_tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a plausible server time in seconds for each answer length, shape (n,)."""
    return ASSUMED_BASE_S + ASSUMED_PER_TOKEN_S * output_tokens.astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A sequence of requests: a conversation's root, a sub-agent, or independent rows.

    All arrays have one entry a request, shape (n,), except the runs: request k has runs
    `run_offset[k] : run_offset[k + 1]` of `run_first` (first id) and `run_blocks` (count).

    `t_s` is the recorded START, seconds from the conversation's start. `think_s` runs from the previous request's END
    to this start; `service_s` is the recorded server time. `stop`, `starter` and `model` are indexes into STOPS,
    STARTERS and the conversation's `models`. `waits[k]` are requests of other streams that must end before request k,
    besides its predecessor here. `tool_tokens + system_tokens` is the leading part that streams with the same tools and
    system prompt may share across sessions; 0 where not recorded.
    """

    name: str
    relation: Relation
    t_s: NDArray[np.float64]
    think_s: NDArray[np.float64]
    service_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int64]
    output_tokens: NDArray[np.int64]
    stop: NDArray[np.uint8]
    starter: NDArray[np.uint8]
    model: NDArray[np.int32]
    run_offset: NDArray[np.int64]
    run_first: NDArray[np.int64]
    run_blocks: NDArray[np.int64]
    tool_tokens: int = 0
    system_tokens: int = 0
    waits: dict[int, tuple[Wait, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.prompt_tokens)

    def runs(self, k: int) -> list[Run]:
        """Return the block runs of request k."""
        low, high = int(self.run_offset[k]), int(self.run_offset[k + 1])
        return list(zip(self.run_first[low:high].tolist(), self.run_blocks[low:high].tolist()))

    def all_runs(self) -> list[list[Run]]:
        """Return the block runs of every request; cheaper than one call per request."""
        first, blocks, offset = self.run_first.tolist(), self.run_blocks.tolist(), self.run_offset.tolist()
        return [list(zip(first[low:high], blocks[low:high])) for low, high in pairwise(offset)]

    def where(self, inside: NDArray[np.bool_]) -> Stream:
        """Return a stream of the independent rows where `inside` is true, shape (n,)."""
        return self.take(np.flatnonzero(inside))

    def take(self, at: NDArray[np.int64]) -> Stream:
        """Return a stream of the requests with these ordinals, in their order, shape (n,); it waits for nothing."""
        sizes = np.diff(self.run_offset)[at]
        runs = np.concatenate([np.arange(self.run_offset[k], self.run_offset[k + 1]) for k in at] or [np.zeros(0, int)])
        columns = ("t_s", "think_s", "service_s", "prompt_tokens", "output_tokens", "stop", "starter", "model")
        return replace(
            self,
            **{name: getattr(self, name)[at] for name in columns},
            waits={},
            run_offset=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            run_first=self.run_first[runs],
            run_blocks=self.run_blocks[runs],
        )

    def ends_s(self) -> NDArray[np.float64]:
        """Return the recorded ends; a missing service time is derived, not taken as zero.

        Request k ends where request k + 1 starts less its think time; where that is missing too, after
        `assumed_service_s`, but no later than request k + 1 starts.
        """
        if self.relation == "independent":
            return self.t_s + np.nan_to_num(self.service_s)
        ends = self.t_s + self.service_s
        from_think_s = np.append(self.t_s[1:] - self.think_s[1:], np.nan)
        assumed = self.t_s + assumed_service_s(self.output_tokens)
        assumed[:-1] = np.minimum(assumed[:-1], self.t_s[1:])
        derived = np.where(np.isnan(from_think_s), assumed, np.maximum(from_think_s, self.t_s))
        return np.where(np.isnan(ends), derived, ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A session tree. `streams[0]` is the root; `start_s` is None where the source has no clock shared by sessions."""

    name: str
    block_tokens: int
    streams: tuple[Stream, ...]
    models: tuple[str, ...] = ("",)
    start_s: float | None = None

    @property
    def requests(self) -> int:
        """The number of requests in all streams."""
        return sum(len(stream) for stream in self.streams)

    @property
    def duration_s(self) -> float:
        """The recorded run, from the start to the last end."""
        return max((float(stream.ends_s().max()) for stream in self.streams if len(stream)), default=0.0)


@dataclass(slots=True, kw_only=True)
class Corpus:
    """Conversations of one source. `scope` says whether equal block ids mean equal content in all of them."""

    name: str
    format: str
    conversations: list[Conversation]
    scope: Literal["local", "global", "none"] = "local"
    repairs: Repairs = field(default_factory=Repairs)
    source_sha256: str = ""

    @property
    def requests(self) -> int:
        """The number of requests in all conversations."""
        return sum(conversation.requests for conversation in self.conversations)

    def digest(self) -> str:
        """Return the SHA-256 of the replayed content, independent of the file's compression and layout.

        Conversations are sorted by name, so a directory and a JSONL file of the same content have one digest.
        """
        digest = hashlib.sha256()
        for conversation in sorted(self.conversations, key=lambda c: c.name):
            digest.update(f"{conversation.name}|{conversation.block_tokens}|{conversation.start_s}".encode())
            for stream in conversation.streams:
                prefix = f"{stream.tool_tokens}|{stream.system_tokens}"
                digest.update(f"{stream.name}|{stream.relation}|{prefix}|{sorted(stream.waits.items())}".encode())
                for column in (stream.t_s, stream.think_s, stream.service_s, stream.prompt_tokens):
                    digest.update(column.tobytes())
                for column in (stream.output_tokens, stream.run_offset, stream.run_first, stream.run_blocks):
                    digest.update(column.tobytes())
        return digest.hexdigest()


class StreamBuilder:
    """Collect requests one by one, then `build` the arrays."""

    __slots__ = (
        "_blocks",
        "_first",
        "_offset",
        "_rows",
        "last_t_s",
        "name",
        "relation",
        "system_tokens",
        "tool_tokens",
        "waits",
    )

    def __init__(self, name: str, relation: Relation) -> None:
        self.name = name
        self.relation: Relation = relation
        self.waits: dict[int, tuple[Wait, ...]] = {}
        self.last_t_s = float("-inf")
        self.tool_tokens = 0
        self.system_tokens = 0
        self._rows: list[tuple[float, float, float, int, int, int, int, int]] = []
        self._offset = [0]
        self._first: list[int] = []
        self._blocks: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self,
        *,
        t_s: float,
        prompt_tokens: int,
        output_tokens: int,
        think_s: float | None = None,
        service_s: float | None = None,
        runs: list[Run] | None = None,
        ids: list[int] | None = None,
        stop: int = 0,
        starter: int = 0,
        model: int = 0,
    ) -> None:
        """Append one request; give its blocks as `runs` or as plain `ids`."""
        think = float("nan") if think_s is None else think_s
        service = float("nan") if service_s is None else service_s
        self._rows.append((t_s, think, service, prompt_tokens, output_tokens, stop, starter, model))
        for first, blocks in runs if runs is not None else runs_of(ids or []):
            self._first.append(first)
            self._blocks.append(blocks)
        self._offset.append(len(self._first))

    def build(self) -> Stream:
        """Return the stream as arrays."""
        columns = list(zip(*self._rows, strict=True)) or [()] * 8
        floats = [np.array(column, dtype=np.float64) for column in columns[:3]]
        counts = [np.array(column, dtype=np.int64) for column in columns[3:5]]
        codes = [np.array(column, dtype=np.uint8) for column in columns[5:7]]
        return Stream(
            name=self.name,
            relation=self.relation,
            t_s=floats[0],
            think_s=floats[1],
            service_s=floats[2],
            prompt_tokens=counts[0],
            output_tokens=counts[1],
            stop=codes[0],
            starter=codes[1],
            model=np.array(columns[7], dtype=np.int32),
            run_offset=np.array(self._offset, dtype=np.int64),
            run_first=np.array(self._first, dtype=np.int64),
            run_blocks=np.array(self._blocks, dtype=np.int64),
            tool_tokens=self.tool_tokens,
            system_tokens=self.system_tokens,
            waits=self.waits,
        )
