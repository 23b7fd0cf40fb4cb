"""The blocks of all contexts as a prefix tree with its unary paths compressed, and reference counts per tier.

Block ids are prefix-chained: equal (scope, id) means equal content at an equal position, so an id names its whole past
and the tree needs no pointers. What is kept of a scope is a row of disjoint extents of ids; a branch is an extent whose
ids do not follow on. Finding a chain costs its runs times the extents that each crosses, never its tokens.

A blob exists in a tier as long as somebody holds it there. Extents split where holders differ and join again where they
do not, so their number follows the branches, not the turns.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice

from orchestrator.turn import KvChain
from plant.kv.blobs import Blob, BlobPart, Replicas
from plant.kv.chains import BlobSizes, pieces


class _Row:
    """The extents of one scope, in order."""

    __slots__ = ("blobs", "firsts")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.blobs: list[Blob] = []


class PrefixTree:
    """The blobs of all contexts.

    Parameters
    ----------
    tiers : int
        Tiers are numbered from fast to slow.
    sizes : BlobSizes

    Attributes
    ----------
    used_bytes : list of int
        By tier: bytes of the blobs that anybody holds there; whoever keeps bytes beside them counts those here too.
    """

    def __init__(self, tiers: int, sizes: BlobSizes) -> None:
        self.sizes = sizes
        self.replicas: Replicas | None = None
        self.used_bytes: list[int] = [0] * tiers
        self._tiers = tiers
        self._alone = [[int(t == tier) for t in range(tiers)] for tier in range(tiers)]  # held by one, in one tier
        self._rows: dict[int, _Row] = {}

    def __len__(self) -> int:
        return sum(len(row.blobs) for row in self._rows.values())

    def __iter__(self) -> Iterator[Blob]:
        return (blob for row in self._rows.values() for blob in row.blobs)

    # ------------------------------------------------ finding
    def match_blocks(self, chain: KvChain, known: int = 0) -> int:
        """Return how many leading blocks of the chain are kept somewhere; the first `known` are, for sure."""
        matched = at = 0
        rows = self._rows
        for scope, first, blocks in chain.runs:
            at += blocks
            if at <= known:
                matched = at
                continue
            row = rows.get(scope)
            if row is None:
                return matched
            end, blobs = first + blocks, row.blobs
            i = bisect_right(row.firsts, first) - 1
            if i < 0:
                return matched
            blob = blobs[i]
            upto = blob.first + blob.blocks
            if end <= upto:
                matched += blocks
                continue
            if first >= upto:
                return matched
            matched += upto - first
            for blob in islice(blobs, i + 1, None):
                if blob.first != upto:
                    return matched
                upto += blob.blocks
                if end <= upto:
                    matched += end - blob.first
                    break
                matched += blob.blocks
            else:
                return matched
        return matched

    def find(self, chain: KvChain, limit: int | None = None) -> list[BlobPart]:
        """Return the kept leading part of the chain, blob by blob, up to the first gap or `limit` blocks."""
        parts: list[BlobPart] = []
        at = 0
        for scope, first, blocks in chain.runs:
            row = self._rows.get(scope)
            if limit is not None:
                blocks = min(blocks, limit - at)
            if row is None or blocks <= 0:
                return parts
            end = first + blocks
            i = bisect_right(row.firsts, first) - 1
            while first < end:
                blob = row.blobs[i] if 0 <= i < len(row.blobs) else None
                if blob is None or not blob.first <= first < blob.first + blob.blocks:
                    return parts
                upto = min(end, blob.first + blob.blocks)
                parts.append(BlobPart(blob, at, at + upto - first))
                at += upto - first
                first = upto
                i += 1
        return parts

    def follows(self, chain: KvChain, low: int, high: int) -> bool:
        """Tell whether nothing is kept, of the scope of a chain's last run, from block `low` on to its end `high`."""
        scope, first, blocks = chain.runs[-1]
        skip = low + blocks - high
        if skip < 0:
            return False
        row = self._rows.get(scope)
        return row is None or row.blobs[-1].first + row.blobs[-1].blocks <= first + skip

    def resumable_blocks(self, chain: KvChain, matched: int) -> int:
        """Return how many of the matched blocks can be resumed from: up to the last snapshot, for a hybrid."""
        if not self.sizes.snapshot_bytes or not matched:
            return matched
        best = matched - matched % self.sizes.snapshot_blocks
        for blob, low, high in reversed(self.find(chain, matched)):
            if high <= best:
                break
            places = [blob.start + end - blob.first + 1 for end in blob.ends]
            inside = [at for at in places if low < at <= high]
            if inside:
                return max(best, *inside)
        return best

    # ------------------------------------------------ holding
    def hold(self, chain: KvChain, low: int, high: int, tier: int) -> None:
        """Hold blocks `low .. high - 1` of the chain in a tier; what is not there yet comes to be."""
        for scope, first, blocks, start in pieces(chain, low, high):
            self._change(scope, first, blocks, start, tier, 1)

    def extend(self, chain: KvChain, low: int, high: int, tier: int) -> None:
        """Hold the end of a chain, blocks `low .. high - 1`."""
        if low < high and not self.append(chain, low, high, tier):
            self.hold(chain, low, high, tier)

    def append(self, chain: KvChain, low: int, high: int, tier: int) -> bool:
        """Hold the end of a chain if nothing of it is kept yet: one step for a context that goes on.

        Tell whether it was so (`follows`); if not, nothing is done.
        """
        scope, first, blocks = chain.runs[-1]
        skip = low + blocks - high
        if skip < 0:
            return False
        first += skip
        grown = high - low
        row = self._rows.get(scope)
        if row is not None:
            last = row.blobs[-1]
            end = last.first + last.blocks
            if end > first:
                return False
            grows = end == first and last.start + last.blocks == low
            if grows and last.held == self._alone[tier] and not last.replicas:
                last.blocks += grown
                self.used_bytes[tier] += self.sizes.span_bytes(low, grown)
                return True
        if grown:
            if row is None:
                row = self._rows[scope] = _Row()
            row.firsts.append(first)
            row.blobs.append(Blob(scope, first, grown, low, self._alone[tier].copy()))
            self.used_bytes[tier] += self.sizes.span_bytes(low, grown)
        return True

    def release(self, chain: KvChain, low: int, high: int, tier: int) -> None:
        """Give up a hold; a blob that nobody holds in any tier is gone.

        Raises
        ------
        ValueError
            Nobody holds part of it there.
        """
        for scope, first, blocks, start in pieces(chain, low, high):
            self._change(scope, first, blocks, start, tier, -1)

    def mark_end(self, chain: KvChain, blocks: int, *, there: bool) -> None:
        """Note, or strike out, that a context ends after so many blocks: a hybrid keeps a snapshot there."""
        if not self.sizes.snapshot_bytes or not blocks:
            return
        last = self.find(chain, blocks)[-1]
        end = last.blob.first + (last.high - 1 - last.blob.start)
        if there:
            last.blob.ends.append(end)
        else:
            last.blob.ends.remove(end)

    def _change(self, scope: int, first: int, blocks: int, start: int, tier: int, by: int) -> None:
        row = self._rows.get(scope)
        if row is None:
            if by < 0:
                raise ValueError(f"nobody holds scope {scope}")
            row = self._rows[scope] = _Row()
        firsts, blobs = row.firsts, row.blobs
        end = first + blocks
        i = bisect_right(firsts, first) - 1
        if i >= 0 and blobs[i].first + blobs[i].blocks > first:
            if blobs[i].first < first:
                self._split(row, i, first)
                i += 1
        else:
            i += 1
        lowest = i
        while first < end:
            blob = blobs[i] if i < len(blobs) else None
            if blob is None or blob.first > first:  # a gap
                if by < 0:
                    raise ValueError(f"nobody holds block {first} of scope {scope}")
                upto = end if blob is None else min(end, blob.first)
                new = Blob(scope, first, upto - first, start, [0] * self._tiers)
                firsts.insert(i, first)
                blobs.insert(i, new)
                blob = new
            elif blob.first + blob.blocks > end:
                self._split(row, i, end)
            self._count(blob, tier, by)
            start += blob.blocks
            first += blob.blocks
            if any(blob.held):
                i += 1
            else:
                if blob.replicas and self.replicas is not None:
                    self.replicas.released(blob)
                del firsts[i], blobs[i]
        self._join(row, max(0, lowest - 1), i)
        if not blobs:
            del self._rows[scope]

    def _count(self, blob: Blob, tier: int, by: int) -> None:
        held = blob.held
        before = held[tier]
        if before + by < 0:
            raise ValueError(f"nobody holds {blob} in tier {tier}")
        held[tier] = before + by
        if not before:
            self.used_bytes[tier] += self.sizes.span_bytes(blob.start, blob.blocks)
        elif not before + by:
            self.used_bytes[tier] -= self.sizes.span_bytes(blob.start, blob.blocks)

    def _split(self, row: _Row, i: int, at: int) -> None:
        """Split an extent before id `at`."""
        blob = row.blobs[i]
        kept = at - blob.first
        tail = Blob(blob.scope, at, blob.blocks - kept, blob.start + kept, blob.held.copy())
        tail.replicas = blob.replicas
        blob.blocks = kept
        if blob.ends:
            tail.ends = [e for e in blob.ends if e >= at]
            blob.ends = [e for e in blob.ends if e < at]
        row.firsts.insert(i + 1, at)
        row.blobs.insert(i + 1, tail)
        if blob.replicas and self.replicas is not None:
            self.replicas.split(blob, tail)

    def _join(self, row: _Row, low: int, high: int) -> None:
        """Join neighbours between two places that follow on and are held alike."""
        blobs = row.blobs
        for i in range(min(high, len(blobs) - 1), low, -1):
            a, b = blobs[i - 1], blobs[i]
            if a.first + a.blocks != b.first or a.start + a.blocks != b.start or a.held != b.held:
                continue
            if not a.replicas and not b.replicas:
                a.blocks += b.blocks
                a.ends += b.ends
                del row.firsts[i], blobs[i]
