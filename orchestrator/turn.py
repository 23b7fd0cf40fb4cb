"""A turn and its context, as far as the orchestrator may know them.

These are NamedTuples, not frozen dataclasses: one or more is born per turn, and a NamedTuple costs a fifth of a frozen
dataclass to make. They are immutable all the same. Output lengths are absent on purpose: only the plant holds them.
"""

from __future__ import annotations

from typing import NamedTuple, NewType

TurnId = NewType("TurnId", int)
WorkerId = NewType("WorkerId", int)
ClassName = NewType("ClassName", str)
ConfigurationName = NewType("ConfigurationName", str)


new = tuple.__new__
"""Makes a NamedTuple of its class and a tuple of its fields, without the Python frame of its constructor."""


class KvRun(NamedTuple):
    """A run of consecutive immutable KV blocks: ids `first .. first + blocks - 1` of one naming scope.

    `scope` separates namespaces: a conversation (with its cache-bust mark), or a prefix that many share.
    Equal (scope, id) means equal content at an equal position; ids are prefix-chained.
    """

    scope: int
    first: int
    blocks: int


class KvChain(NamedTuple):
    """An ordered chain of blocks: the reusable part of a context. The empty chain is `EMPTY_CHAIN`."""

    runs: tuple[KvRun, ...]
    block_tokens: int


EMPTY_CHAIN = KvChain((), 1)


class KvRef(NamedTuple):
    """KV state that exists: `tokens` positions of `chain`, held by `worker` (None: in shared storage, or unplaced)."""

    chain: KvChain
    tokens: int
    worker: WorkerId | None


class TurnView(NamedTuple):
    """One turn as the orchestrator and every law see it.

    `key` names the turn in every run of the scenario, whatever the policy: a hash of (lane or source, recycle number,
    ordinal, sub-agent path). `turn_id` counts births within this run. `prompt_tokens` includes any cached prefix.
    """

    turn_id: TurnId
    key: int
    class_name: ClassName
    session_id: int
    ordinal: int
    arrived_s: float
    prompt_tokens: int
    context: KvChain
