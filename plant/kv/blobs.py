"""Blobs: extents of blocks that contexts share, with their holders in each tier."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Blob:
    """An extent of blocks: ids `first .. first + blocks - 1` of a scope, `start` blocks into their context.

    `held[t]` counts the holders in tier t. `ends` are ids after which a context ended (a hybrid's snapshots).
    `replicas` is a bit per rack whose cache has a copy.
    """

    __slots__ = ("blocks", "ends", "first", "held", "replicas", "scope", "start")

    def __init__(self, scope: int, first: int, blocks: int, start: int, held: list[int]) -> None:
        self.scope, self.first, self.blocks, self.start = scope, first, blocks, start
        self.held = held
        self.ends: list[int] = []
        self.replicas = 0

    def __repr__(self) -> str:
        return f"Blob({self.scope}, {self.first}+{self.blocks} at {self.start}, held {self.held})"


class BlobPart(NamedTuple):
    """Part of a chain that is kept: blocks `low .. high - 1` of it lie in `blob`."""

    blob: Blob
    low: int
    high: int


class Replicas(Protocol):
    """The copies of blobs beside the tiers; the tree reports what becomes of their blobs."""

    def split(self, head: Blob, tail: Blob) -> None:
        """A blob was split in two."""
        ...

    def released(self, blob: Blob) -> None:
        """Nobody holds the blob any more."""
        ...
