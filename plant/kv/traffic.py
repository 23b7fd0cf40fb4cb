"""The links that state crosses, and the ways from tier to worker and back.

fetch   network or ssd server's link -> uplink of the worker's rack (-> host link, where CPU memory is in between)
        node of another worker       -> uplinks of both racks; a copy in the rack's cache crosses neither
write   host link -> node;  node -> uplink -> links of all servers that keep a copy;  network -> ssd server
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from orchestrator.clock import Clock
from orchestrator.rng import mix
from orchestrator.turn import WorkerId
from plant.kv.moves import Move, Route
from plant.kv.spec import NETWORK, NODE, SSD, KvSpec, TierSpec
from plant.links import SharedLink

CACHE = -1  # a source beside the tiers: the rack's cache of hot blobs


class Traffic:
    """All transfers of KV state among tiers and workers.

    Parameters
    ----------
    clock : Clock
    spec : KvSpec
    uplinks : sequence of SharedLink
        One a rack, shared with everything else that leaves it.
    rack_of : callable
        The rack of a worker.
    """

    def __init__(
        self, clock: Clock, spec: KvSpec, uplinks: Sequence[SharedLink], rack_of: Callable[[WorkerId], int]
    ) -> None:
        self._clock, self._spec, self._uplinks, self._rack_of = clock, spec, uplinks, rack_of
        self.network = self._servers(spec.network)
        self.ssd = self._servers(spec.ssd)
        self._hosts: dict[WorkerId, SharedLink] = {}
        self._live: dict[Move, None] = {}
        self.rerouted = 0
        self.moved_bytes: dict[str, float] = {"fetch": 0.0, "stage": 0.0, "drain": 0.0, "demote": 0.0}

    def _servers(self, tier: TierSpec | None) -> list[SharedLink]:
        if tier is None or math.isinf(tier.bytes_per_s):
            return []
        rate = tier.bytes_per_s * self._spec.efficiency_ratio
        return [SharedLink(self._clock, rate) for _ in range(tier.servers)]

    def _host(self, worker: WorkerId) -> list[SharedLink]:
        node = self._spec.node
        if node is None or math.isinf(node.bytes_per_s):
            return []
        link = self._hosts.get(worker)
        if link is None:
            rate = node.bytes_per_s * self._spec.efficiency_ratio
            link = self._hosts[worker] = SharedLink(self._clock, rate)
        return [link]

    def named(self) -> dict[str, SharedLink]:
        """Return the storage servers' links by name, as faults name them."""
        rows = (("network", self.network), ("ssd", self.ssd))
        return {f"{tier}.{n}": link for tier, links in rows for n, link in enumerate(links)}

    # ------------------------------------------------ ways
    def _fetch_routes(self, key: int, tier: int, worker: WorkerId, source: WorkerId) -> list[Route]:
        rack = self._rack_of(worker)
        tail = self._host(worker) if self._spec.placement == "cpu" else []
        if tier == CACHE:
            return [tail]
        if tier == NODE:
            if source == worker:
                return [self._host(worker)]
            other = self._rack_of(source)
            between = [] if other == rack else [self._uplinks[other], self._uplinks[rack]]
            return [[*self._host(source), *between, *tail]]
        servers = self.network if tier == NETWORK else self.ssd
        ways = self._copies(key, servers, self._spec.replicas if tier == NETWORK else 1)
        return [[*way, self._uplinks[rack], *tail] for way in ways]

    def _copies(self, key: int, servers: Sequence[SharedLink], replicas: int) -> list[list[SharedLink]]:
        """Return the servers that keep a context's copies, the least busy first; [[]] where they take no time."""
        if not servers:
            return [[]]
        first = mix(key, 0) % len(servers)
        own = [servers[(first + k) % len(servers)] for k in range(min(replicas, len(servers)))]
        own.sort(key=lambda link: link.live)
        return [[link] for link in own]

    # ------------------------------------------------ moves
    def fetch(
        self, key: int, tier: int, worker: WorkerId, source: WorkerId, size_bytes: float, end: Callable[[Move], object]
    ) -> Move:
        """Bring state to a worker."""
        spec = self._spec
        storage = {NODE: spec.node, NETWORK: spec.network, SSD: spec.ssd}.get(tier)
        latency_s = spec.per_object_s + (storage.latency_s if storage is not None else 0.0)
        self.moved_bytes["fetch"] += size_bytes
        return self._send(self._fetch_routes(key, tier, worker, source), size_bytes, latency_s, True, end)

    def stage(self, worker: WorkerId, size_bytes: float, end: Callable[[Move], object]) -> Move:
        """Copy new state from a worker's accelerators into its node's DRAM."""
        self.moved_bytes["stage"] += size_bytes
        latency_s = self._spec.node.latency_s if self._spec.node is not None else 0.0
        return self._send([self._host(worker)], size_bytes, latency_s, False, end)

    def drain(self, key: int, worker: WorkerId, size_bytes: float, end: Callable[[Move], object]) -> Move:
        """Send state from a node to every network server that is to keep it."""
        spec = self._spec
        self.moved_bytes["drain"] += size_bytes * spec.replicas
        servers = [link for way in self._copies(key, self.network, spec.replicas) for link in way]
        route = [self._uplinks[self._rack_of(worker)], *servers]
        return self._send([route], size_bytes, spec.per_object_s + spec.network.latency_s, True, end)

    def demote(self, key: int, size_bytes: float, end: Callable[[Move], object]) -> Move:
        """Send state from the network tier to an SSD server."""
        spec = self._spec
        self.moved_bytes["demote"] += size_bytes
        ways = self._copies(key, self.network, spec.replicas)
        disk = [link for way in self._copies(key, self.ssd, 1) for link in way]
        latency_s = spec.per_object_s + (spec.ssd.latency_s if spec.ssd is not None else 0.0)
        return self._send([[*way, *disk] for way in ways], size_bytes, latency_s, False, end)

    def _send(
        self, routes: Sequence[Route], size_bytes: float, latency_s: float, nics: bool, end: Callable[[Move], object]
    ) -> Move:
        routes = [[link for link in route if link.rate_bytes_per_s < math.inf] for route in routes]

        def ended(move: Move) -> None:
            del self._live[move]
            end(move)

        floor_s = 0.0
        if nics:
            alone = self._spec.object_bytes_per_s(size_bytes)
            if any(all(link.rate_bytes_per_s > alone for link in route) for route in routes):
                floor_s = size_bytes / alone
        move = Move(self._clock, routes, size_bytes, latency_s, floor_s, ended)
        self._live[move] = None
        return move

    def stop(self, move: Move) -> float:
        """Stop a move; return the bytes that it had not yet moved."""
        if self._live.pop(move, 0) == 0:
            return 0.0
        left = move.unmoved_bytes()
        move.cancel()
        return left

    def links_changed(self) -> None:
        """A link has stopped or come back: send what can go another way."""
        for move in list(self._live):
            self.rerouted += move.reroute()

    # ------------------------------------------------ estimates
    def fetch_s(self, key: int, tier: int, worker: WorkerId, source: WorkerId, size_bytes: float) -> float:
        """Estimate a fetch's seconds, were it to begin now and the links to stay as busy as they are."""
        spec = self._spec
        storage = {NODE: spec.node, NETWORK: spec.network, SSD: spec.ssd}.get(tier)
        latency_s = spec.per_object_s + (storage.latency_s if storage is not None else 0.0)
        best = math.inf
        for route in self._fetch_routes(key, tier, worker, source):
            rate = spec.object_bytes_per_s(size_bytes)
            for link in route:
                rate = min(rate, link.rate_bytes_per_s / (link.live + 1))
            best = min(best, size_bytes / rate if rate > 0.0 else math.inf)
        return latency_s + best

    def link_bytes(self) -> Iterator[tuple[str, float]]:
        """Yield (link, bytes carried so far); the hosts' links as one."""
        for name, link in self.named().items():
            yield name, link.carried_bytes()
        for rack, link in enumerate(self._uplinks):
            yield f"uplink.{rack}", link.carried_bytes()
        if self._hosts:
            yield "hosts", sum(link.carried_bytes() for link in self._hosts.values())

    def __len__(self) -> int:
        return len(self._live)
