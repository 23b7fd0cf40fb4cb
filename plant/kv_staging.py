"""Transfers of KV state from the worker that filled a turn to the worker that decodes it, over the racks' uplinks."""

from __future__ import annotations

import asyncio
from functools import partial

from orchestrator.clock import Clock
from orchestrator.errors import WorkerLost
from orchestrator.ports import Staged
from orchestrator.turn import KvRef, new
from plant.fleet import Fleet, WorkerNode
from plant.links.transfer import Transfer
from plant.pending_work import failed_future
from plant.workers.staging import EvictedKv, bind_to_epoch


class KvStaging:
    """Starts the transfers of a cluster.

    Attributes
    ----------
    staged_bytes : float
        Bytes of all transfers so far.
    """

    def __init__(self, clock: Clock, fleet: Fleet) -> None:
        self._clock, self._fleet = clock, fleet
        self.staged_bytes = 0.0

    def stage(self, node: WorkerNode, kv: KvRef) -> asyncio.Future[Staged]:
        """Bring the KV state to the worker; at once where it is there already."""
        clock, fleet, buffer = self._clock, self._fleet, node.staging
        local_kv = new(KvRef, (kv.chain, kv.tokens, node.id))
        if type(kv) is EvictedKv:  # there is no other copy: it can be sent as long as its worker is not lost
            if fleet.is_lost(kv):
                return failed_future(clock, WorkerLost(f"worker {kv.worker} was lost, and the state on it"))
            local_kv = bind_to_epoch(local_kv, node.epoch)
        size_bytes = kv.tokens * node.spec.kv_bytes_per_token + node.spec.kv_bytes_per_turn
        if buffer is None or kv.worker == node.id or not kv.tokens or size_bytes <= 0.0:
            ready = clock.future()
            ready.set_result(new(Staged, (local_kv, 0.0)))
            return ready
        future: asyncio.Future[Staged] = asyncio.Future(loop=clock.loop)
        kv_transfer = buffer.begin(future, Staged(local_kv, size_bytes))
        rack, path = fleet.racks[node.rack], fleet.path(kv.worker, node)
        self.staged_bytes += size_bytes
        if type(kv) is EvictedKv:
            kv_transfer.source_lost = partial(fleet.is_lost, kv)
        alone_s = size_bytes / rack.flow_bytes_per_s
        kv_transfer.transfer = Transfer(clock, path, size_bytes, rack.latency_s, alone_s, kv_transfer.arrived)
        return future
