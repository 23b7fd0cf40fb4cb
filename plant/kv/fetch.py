"""The fetch of a turn's kept context to its worker: one transfer for each source, in as many parts as layers overlap.

With S > 1 parts the fill may begin when the first part of every source is there, and its last layers wait for the last
part: a fill of C seconds whose state comes in F seconds ends after F / S + C where it computes more slowly than state
comes, and after F + C / S where it does not (a two-machine flow shop of S equal jobs; Johnson 1954).

Whatever a fetch needs is held until the last byte is there, so no blob is discarded under a turn that waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from orchestrator.clock import Clock
from orchestrator.turn import TurnView, WorkerId
from plant.kv.blob_sources import BlobSources, best_tier
from plant.kv.blobs import BlobPart
from plant.kv.context import Context
from plant.kv.prefix_tree import PrefixTree
from plant.kv.routed_transfer import RoutedTransfer
from plant.kv.spec import NETWORK
from plant.kv.transfer_engine import TransferEngine


class FetchResources(NamedTuple):
    """What every fetch of a store works with.

    Attributes
    ----------
    stages : int
        Parts in which state comes.
    unpinned : callable
        Called when a fetch no longer keeps its session's context from eviction.
    """

    clock: Clock
    tree: PrefixTree
    engine: TransferEngine
    sources: BlobSources
    stages: int
    unpinned: Callable[[], None]


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
        "_after", "_arg", "_blocks", "_context", "_later", "_pinned", "_ready", "_resources", "_source", "_transfers",
        "_turn", "_worker", "done_s", "stages",
    )  # fmt: skip

    def __init__(
        self,
        resources: FetchResources,
        turn: TurnView,
        needed: list[BlobPart] | int,
        worker: WorkerId,
        context: Context | None,
        sizes: dict[int, int],
        ready: Callable[[object], object],
        arg: object,
    ) -> None:
        """Begin. `needed`: parts of blobs, or how many blocks of the session's last context, which holds them all."""
        self._resources, self._turn, self._worker = resources, turn, worker
        self._context, self._ready, self._arg = context, ready, arg
        self._after: Callable[[object], object] | None = None
        self.done_s: float | None = None
        _, tree, engine, _, stages, _ = resources
        self.stages = stages
        self._source = source = worker if context is None else context.worker
        self._blocks = 0  # of the session's own context
        self._pinned: Sequence[tuple[int, int, int]] = ()
        self._later: Sequence[tuple[int, int]] = ()
        if isinstance(needed, int):
            assert context is not None, "only a context holds blocks for its reader"
            self._blocks = needed
            context.pin(self)
        else:
            if context is not None:
                context.pin()
            self._pinned = [(low, high, best_tier(blob)) for blob, low, high in needed]
            for low, high, tier in self._pinned:
                tree.hold(turn.context, low, high, tier)
        if stages > 1:
            self._later = [(tier, size - size // stages) for tier, size in sizes.items()]
            sizes = {tier: size // stages for tier, size in sizes.items()}
        key, first = turn.session_id, self._first
        self._transfers: list[RoutedTransfer] = [
            engine.fetch(key, tier, worker, source, size, first) for tier, size in sizes.items()
        ]

    def _first(self, transfer: RoutedTransfer) -> None:
        """The first part of one source is there."""
        self._transfers.remove(transfer)
        if self._transfers:
            return
        if self._later:
            key, worker, source, fetch = self._turn.session_id, self._worker, self._source, self._resources.engine.fetch
            self._transfers = [fetch(key, tier, worker, source, size, self._rest) for tier, size in self._later if size]
        if not self._transfers:
            self._finish()
        self._ready(self._arg)

    def _rest(self, transfer: RoutedTransfer) -> None:
        self._transfers.remove(transfer)
        if not self._transfers:
            self._finish()
            if self._after is not None:
                self._after(self._arg)

    def _finish(self) -> None:
        self._unpin()
        sources = self._resources.sources
        if sources.caches is not None:
            blocks = self._blocks or max((high for _, high, _ in self._pinned), default=0)
            sources.warm(self._turn.context, blocks, self._worker)

    def when_done(self, then: Callable[[object], object]) -> None:
        """Call `then` with the turn's argument when the last byte is there."""
        self._after = then

    def cancel(self) -> None:
        """The turn is gone: stop, and let go of what was held for it."""
        if self.done_s is None:
            for transfer in self._transfers:
                self._resources.engine.stop(transfer)
            self._transfers = []
            self._unpin()

    def hold_alone(self) -> None:
        """Hold what is needed itself: the session's context is about to be given up."""
        self._pinned = [(0, self._blocks, NETWORK)]
        self._resources.tree.hold(self._turn.context, 0, self._blocks, NETWORK)

    def _unpin(self) -> None:
        clock, tree, _, _, _, unpinned = self._resources
        self.done_s = clock.now()
        for low, high, tier in self._pinned:
            tree.release(self._turn.context, low, high, tier)
        if self._context is not None:
            self._context.unpin(self)
            unpinned()
