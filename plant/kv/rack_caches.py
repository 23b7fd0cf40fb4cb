"""Caches in the racks for hot blobs: copies of what very many contexts share, such as system prompts.

They are shared by the rack's workers and bind no turn to anybody: a miss goes to the network tier. A copy lives no
longer than its blob.
"""

from __future__ import annotations

from collections import OrderedDict

from plant.kv.blobs import Blob
from plant.kv.chains import BlobSizes


class RackCaches:
    """One cache a rack, least recently used goes first.

    Parameters
    ----------
    racks : int
    capacity_bytes : float
        Of each cache.
    sizes : BlobSizes
    """

    def __init__(self, racks: int, capacity_bytes: float, sizes: BlobSizes) -> None:
        self._capacity, self._sizes = capacity_bytes, sizes
        self._rows: list[OrderedDict[Blob, None]] = [OrderedDict() for _ in range(racks)]
        self.used_bytes: list[int] = [0] * racks

    def has(self, blob: Blob, rack: int) -> bool:
        """Tell whether the rack has a copy, and count it as used."""
        if not blob.replicas >> rack & 1:
            return False
        self._rows[rack].move_to_end(blob)
        return True

    def admit(self, blob: Blob, rack: int) -> None:
        """Keep a copy that has just come by, if the cache can hold it at all."""
        size = self._size(blob)
        if blob.replicas >> rack & 1 or size > self._capacity:
            return
        row = self._rows[rack]
        while self.used_bytes[rack] + size > self._capacity:
            self._drop(next(iter(row)), rack)
        row[blob] = None
        blob.replicas |= 1 << rack
        self.used_bytes[rack] += size

    def split(self, head: Blob, tail: Blob) -> None:
        """A blob was split: both halves are still here."""
        for rack in self._racks(tail):
            self._rows[rack][tail] = None

    def released(self, blob: Blob) -> None:
        """Nobody holds the blob any more."""
        for rack in self._racks(blob):
            self._drop(blob, rack)

    def _racks(self, blob: Blob) -> list[int]:
        return [rack for rack in range(len(self._rows)) if blob.replicas >> rack & 1]

    def _drop(self, blob: Blob, rack: int) -> None:
        del self._rows[rack][blob]
        blob.replicas &= ~(1 << rack)
        self.used_bytes[rack] -= self._size(blob)

    def _size(self, blob: Blob) -> int:
        return self._sizes.span_bytes(blob.start, blob.blocks)
