"""Bringing a turn's kept context to its worker: one move a source, in as many parts as layers overlap.

With S > 1 parts the fill may begin when the first part of every source is there, and its last layers wait for the last
part: a fill of C seconds whose state comes in F seconds ends after F / S + C where it computes more slowly than state
comes, and after F + C / S where it does not (a two-machine flow shop of S equal jobs; Johnson 1954).

Whatever a fetch needs is held until the last byte is there, so no blob is discarded under a turn that waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator.turn import TurnView, WorkerId
from plant.kv.lru_queues import Context
from plant.kv.prefix_tree import Blob, Found
from plant.kv.routed_transfer import RoutedTransfer
from plant.kv.spec import NETWORK, NODE, SSD
from plant.kv.tier_stats import TierStats
from plant.kv.transfer_engine import CACHE, TransferEngine

if TYPE_CHECKING:
    from plant.kv.tiered import TieredStore


def best_tier(blob: Blob) -> int:
    """Return the tier that a blob is best taken from: the network's, a node's, SSD."""
    held = blob.held
    return NETWORK if held[NETWORK] else NODE if held[NODE] else SSD


def source_of(store: TieredStore, blob: Blob, rack: int) -> int:
    """Return where a blob is best taken from: the rack's cache, or a tier."""
    if store.caches is not None and store.caches.has(blob, rack):
        return CACHE
    return best_tier(blob)


def sources(
    store: TieredStore,
    found: list[Found],
    size: int,
    cached_tokens: int,
    worker: WorkerId,
    ledger: TierStats | None = None,
) -> dict[int, int]:
    """Return the bytes to take from each source for the first `cached_tokens`; count the hits in a ledger, if given.

    `found` are the blobs that hold them, `size` the tokens of a block.
    """
    sizes, rack = store.tree.sizes, store.rack_of(worker)
    taken: dict[int, int] = {}
    source = NETWORK
    for blob, low, high in found:
        source = source_of(store, blob, rack)
        taken[source] = taken.get(source, 0) + (high - low) * sizes.block_bytes
        if ledger is not None:
            ledger.hit_tokens[source] += min(high * size, cached_tokens) - low * size
            ledger.taken_bytes[source] += (high - low) * sizes.block_bytes
    if sizes.snapshot_bytes and taken:
        taken[source] += sizes.snapshot_bytes
    return taken


class Fetch:
    """One turn's state on its way.

    Attributes
    ----------
    done_s : float or None
        When the last byte arrived.
    stages : int
        Parts in which it comes.
    """

    __slots__ = (
        "_after", "_arg", "_context", "_covered", "_moves", "_parts", "_pinned", "_ready", "_source", "_store",
        "_traffic", "_turn", "_worker", "done_s", "stages",
    )  # fmt: skip

    def __init__(
        self,
        store: TieredStore,
        traffic: TransferEngine,
        turn: TurnView,
        found: list[Found] | int,
        worker: WorkerId,
        context: Context | None,
        sizes: dict[int, int],
        ready: Callable[[object], object],
        arg: object,
    ) -> None:
        """Begin. `found`: the blobs needed, or how many blocks of the session's own context, which holds them all."""
        self._store, self._traffic, self._turn, self._worker = store, traffic, turn, worker
        self._context, self._ready, self._arg = context, ready, arg
        self._after: Callable[[object], object] | None = None
        self.done_s: float | None = None
        self.stages = stages = store.spec.stages
        self._source = source = worker if context is None else context.worker
        self._covered = 0
        self._pinned: Sequence[tuple[int, int, int]] = ()
        self._parts: Sequence[tuple[int, int]] = ()
        if context is not None:
            context.pins += 1
        if isinstance(found, int):
            assert context is not None, "only a context holds blocks for its guest"
            self._covered, context.guest = found, self
        else:
            self._pinned = [(low, high, best_tier(blob)) for blob, low, high in found]
            for low, high, tier in self._pinned:
                store.tree.hold(turn.context, low, high, tier)
        if stages > 1:
            self._parts = [(tier, size - size // stages) for tier, size in sizes.items()]
            sizes = {tier: size // stages for tier, size in sizes.items()}
        self._moves: list[RoutedTransfer] = []
        for tier, size in sizes.items():
            self._moves.append(traffic.fetch(turn.session_id, tier, worker, source, size, self._first))

    def _first(self, move: RoutedTransfer) -> None:
        """The first part of one source is there."""
        self._moves.remove(move)
        if self._moves:
            return
        if self._parts:
            key, worker, source = self._turn.session_id, self._worker, self._source
            self._moves = [
                self._traffic.fetch(key, tier, worker, source, size, self._rest) for tier, size in self._parts if size
            ]
        if not self._moves:
            self._finish()
        self._ready(self._arg)

    def _rest(self, move: RoutedTransfer) -> None:
        self._moves.remove(move)
        if not self._moves:
            self._finish()
            if self._after is not None:
                self._after(self._arg)

    def _finish(self) -> None:
        store = self._store
        self.done_s = store.keep.now_s()
        self._unpin()
        if store.caches is not None:
            blocks = self._covered or max((high for _, high, _ in self._pinned), default=0)
            store.warm(self._turn.context, blocks, self._worker)

    def when_done(self, then: Callable[[object], object]) -> None:
        """Call `then` with the turn's argument when the last byte is there."""
        self._after = then

    def cancel(self) -> None:
        """The turn is gone: stop, and let go of what was held for it."""
        if self.done_s is None:
            for move in self._moves:
                self._traffic.stop(move)
            self._moves = []
            self.done_s = self._store.keep.now_s()
            self._unpin()

    def stand_alone(self) -> None:
        """Hold what is needed itself: the session's context is about to be given up."""
        self._pinned = [(0, self._covered, NETWORK)]
        self._store.tree.hold(self._turn.context, 0, self._covered, NETWORK)
        if self._context is not None:
            self._context.guest = None

    def _unpin(self) -> None:
        store = self._store
        for low, high, tier in self._pinned:
            store.tree.release(self._turn.context, low, high, tier)
        context = self._context
        if context is not None:
            context.pins -= 1
            if context.guest is self:
                context.guest = None
            if store.keep.waiting:
                store.keep.serve()
