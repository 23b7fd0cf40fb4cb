"""Transfers of kept contexts from tier to tier: begun, ended and halted here, booked in the ledger.

write    new state -> through its node's DRAM -> network DRAM, or straight there
stage    new state -> its node's DRAM, to wait there until the network tier has room;  drain: from there on
demote   network DRAM -> SSD
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from orchestrator.clock import Clock
from plant.kv.context import DRAINING, STAGING, Context
from plant.kv.context_ledger import ContextLedger
from plant.kv.routed_transfer import RoutedTransfer
from plant.kv.spec import NETWORK, NODE, SSD, KvSpec
from plant.kv.tier_stats import TierStats
from plant.kv.transfer_engine import TransferEngine


class ContextMover:
    """One transfer at a time for each context.

    Parameters
    ----------
    clock : Clock
    spec : KvSpec
    ledger : ContextLedger
    engine : TransferEngine or None
        None: nothing takes time.
    stats : TierStats
    landed, freed : callable
        Called when a context has come to rest in the network tier; and when it waits in its node, or has left the
        network tier.

    Attributes
    ----------
    via_nodes : bool
        There is a node tier, and it takes time to write.
    staging_bytes : float
        On their way out of accelerator memory.
    """

    def __init__(
        self,
        clock: Clock,
        spec: KvSpec,
        ledger: ContextLedger,
        engine: TransferEngine | None,
        stats: TierStats,
        landed: Callable[[], None],
        freed: Callable[[], None],
    ) -> None:
        self._clock, self._ledger, self._engine, self._stats = clock, ledger, engine, stats
        self._landed, self._freed = landed, freed
        self.via_nodes = spec.node is not None and engine is not None
        self._hosts_take_time = spec.node is not None and spec.node.bytes_per_s < math.inf
        self.staging_bytes = 0.0
        self._transfers: dict[Context, RoutedTransfer] = {}

    def write(self, context: Context, size_bytes: int, *, via_node: bool) -> None:
        """Send the new state of a settled context to the network tier."""
        engine, written_bytes = self._engine, self._stats.written_bytes
        written_bytes[NETWORK] += size_bytes
        if engine is None or not size_bytes:
            return
        if not via_node:
            self._ledger.write(context, 0)
            self._drain(engine, context, size_bytes)
            return
        written_bytes[NODE] += size_bytes
        self._ledger.write(context, size_bytes)
        self.staging_bytes += size_bytes
        written = partial(self._written, context)
        self._transfers[context] = engine.write(context.key, context.worker, size_bytes, written)

    def _written(self, context: Context, transfer: RoutedTransfer) -> None:
        del self._transfers[context]
        self._left_accelerator(context, transfer)
        self._ledger.land(context)
        self._landed()

    def _left_accelerator(self, context: Context, transfer: RoutedTransfer) -> None:
        """Count how long what was written through the node lay in accelerator memory."""
        size_bytes = context.bounce_bytes
        self.staging_bytes -= size_bytes
        if self._hosts_take_time:
            until_s, now_s = transfer.left_source_s(), self._clock.now()
            self._stats.idle_hbm_byte_s += size_bytes * ((until_s if until_s < now_s else now_s) - transfer.begun_s)

    def stage(self, context: Context, size_bytes: int) -> None:
        """Copy the new state of a context, which is booked in its node, there."""
        assert self._engine is not None, "without transfers nothing is staged"
        self._stats.written_bytes[NODE] += size_bytes
        self.staging_bytes += size_bytes
        self._transfers[context] = self._engine.stage(context.worker, size_bytes, partial(self._staged, context))

    def _staged(self, context: Context, transfer: RoutedTransfer) -> None:
        del self._transfers[context]
        self.staging_bytes -= transfer.size_bytes
        self._stats.idle_hbm_byte_s += transfer.size_bytes * (self._clock.now() - transfer.begun_s)
        self._ledger.wait(context)
        self._freed()

    def drain_staged(self, context: Context) -> None:
        """Send a context that waits in its node to the network tier, which has room for it."""
        assert self._engine is not None, "without transfers nothing waits"
        self._ledger.drain_staged(context)
        size_bytes = self._ledger.unsettled_bytes(context) + context.private_bytes
        self._stats.written_bytes[NETWORK] += size_bytes
        self._drain(self._engine, context, size_bytes)

    def _drain(self, engine: TransferEngine, context: Context, size_bytes: int) -> None:
        self._transfers[context] = engine.drain(
            context.key, context.worker, size_bytes, partial(self._drained, context)
        )

    def _drained(self, context: Context, _: RoutedTransfer) -> None:
        del self._transfers[context]
        self._ledger.land(context)
        self._landed()

    def demote(self, context: Context) -> None:
        """Send a context at rest from the network tier to SSD, which has room for it."""
        self._ledger.demote(context)
        if self._engine is None:
            self._demoted(context)
        else:
            size_bytes = self._ledger.size_bytes(context)
            self._transfers[context] = self._engine.demote(context.key, size_bytes, partial(self._demoted, context))

    def _demoted(self, context: Context, _: RoutedTransfer | None = None) -> None:
        self._transfers.pop(context, None)
        self._ledger.demoted(context)
        self._stats.demoted += 1
        self._stats.written_bytes[SSD] += self._ledger.size_bytes(context)
        self._freed()

    def halt(self, context: Context) -> int:
        """Stop whatever moves a context; return the bytes of it that are still at its worker alone."""
        at_worker, transfer = 0, self._transfers.pop(context, None)
        if transfer is not None and self._engine is not None:
            if context.bounce_bytes:
                self._left_accelerator(context, transfer)
            left = math.ceil(self._engine.stop(transfer))
            if context.phase == STAGING:
                self.staging_bytes -= transfer.size_bytes
                at_worker = left
            elif context.phase == DRAINING and context.tail == NETWORK:  # else it lies in its node
                at_worker = left
        self._ledger.halt(context)
        return at_worker
