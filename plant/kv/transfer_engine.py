"""The links that KV state crosses, and the routes between tiers and workers.

fetch   network or ssd server's link -> uplink of the worker's rack (-> host link, where CPU memory is in between)
        node of another worker       -> uplinks of both racks; a copy in the rack's cache crosses neither
write   host link -> uplink -> links of all servers that keep a copy, through the node's DRAM where there is a node tier
stage   host link -> node's DRAM, to wait there;  drain: from there on;  demote: network -> ssd server
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from math import fsum

from orchestrator.clock import Clock
from orchestrator.rng import mix
from orchestrator.turn import WorkerId
from plant.kv.routed_transfer import Route, RoutedTransfer
from plant.kv.spec import NETWORK, NODE, SSD, KvSpec, TierSpec
from plant.links.lazy_link import LazyLink
from plant.links.shared_link import SharedLink

CACHE = -1  # a source beside the tiers: the rack's cache of hot blobs


class TransferEngine:
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
        self._ups = [_finite([link]) for link in uplinks]
        self.network = self._servers(spec.network)
        self.ssd = self._servers(spec.ssd)
        servers = len(self.network) or 1
        self._hosts: dict[WorkerId, list[LazyLink]] = {}
        self._single = spec.replicas == 1
        # Where there is one copy, the route is made once for each pair of server and worker.
        self._server = lru_cache(1 << 16)(lambda key: mix(key, 0) % servers)
        self._read_routes, self._single_write_routes = cache(self._read), cache(self._write)
        self._live: dict[RoutedTransfer, None] = {}
        self._node_latency_s = spec.node.latency_s if spec.node is not None else 0.0
        self._latency_s = {
            CACHE: spec.per_object_s,
            NODE: spec.per_object_s + self._node_latency_s,
            NETWORK: spec.per_object_s + spec.network.latency_s,
            SSD: spec.per_object_s + (spec.ssd.latency_s if spec.ssd is not None else 0.0),
        }
        self._write_latency_s = self._latency_s[NETWORK] + self._node_latency_s
        self._full_bytes = spec.nics * spec.stripe_bytes  # an object so large is striped over all NICs
        self._full_bytes_per_s = spec.object_bytes_per_s(self._full_bytes)
        self.rerouted = 0
        self.moved_bytes: dict[str, float] = {"fetch": 0.0, "stage": 0.0, "drain": 0.0, "demote": 0.0}

    def _servers(self, tier: TierSpec | None) -> list[LazyLink]:
        if tier is None or math.isinf(tier.bytes_per_s):
            return []
        rate = tier.bytes_per_s * self._spec.efficiency_ratio
        return [LazyLink(self._clock, rate) for _ in range(tier.servers)]

    def _host(self, worker: WorkerId) -> list[LazyLink]:
        """Return the link between a worker and its node's DRAM; [] where it takes no time."""
        links = self._hosts.get(worker)
        if links is None:
            node = self._spec.node
            links = self._hosts[worker] = []
            if node is not None and node.bytes_per_s < math.inf:
                links.append(LazyLink(self._clock, node.bytes_per_s * self._spec.efficiency_ratio))
        return links

    def storage_links(self) -> dict[str, LazyLink]:
        """Return the storage servers' links by name, as faults name them."""
        rows = (("network", self.network), ("ssd", self.ssd))
        return {f"{tier}.{n}": link for tier, links in rows for n, link in enumerate(links)}

    def servers_of(self, key: int, tier: int) -> list[str]:
        """Return the names of the storage servers that keep a context's copies in a tier."""
        if tier == SSD:
            return [f"ssd.{mix(key, 0) % len(self.ssd)}"] if self.ssd else []
        count, first = len(self.network), self._server(key)
        return [f"network.{(first + k) % count}" for k in range(min(self._spec.replicas, count))]

    # ------------------------------------------------ routes
    def _fetch_routes(self, key: int, tier: int, worker: WorkerId, source: WorkerId) -> Sequence[Route]:
        if tier == NETWORK and self._single:
            return self._read_routes(self._server(key), worker)
        tail = self._incoming(worker)
        if tier == CACHE:
            return [tail]
        rack = self._rack_of(worker)
        if tier == NODE:
            if source == worker:
                return [self._host(worker)]
            other = self._rack_of(source)
            between = [] if other == rack else [*self._ups[other], *self._ups[rack]]
            return [[*self._host(source), *between, *tail]]
        heads = self._copies(key) if tier == NETWORK else [self._single_server(key, self.ssd)]
        return [[*head, *self._ups[rack], *tail] for head in heads]

    def _write_routes(self, key: int, worker: WorkerId) -> Sequence[Route]:
        servers = [link for copy in self._copies(key) for link in copy]
        return [[*self._host(worker), *self._ups[self._rack_of(worker)], *servers]]

    def _read(self, server: int, worker: WorkerId) -> Sequence[Route]:
        """Return the one route from a network server to a worker."""
        return ([*self.network[server : server + 1], *self._ups[self._rack_of(worker)], *self._incoming(worker)],)

    def _write(self, server: int, worker: WorkerId) -> Sequence[Route]:
        return ([*self._host(worker), *self._ups[self._rack_of(worker)], *self.network[server : server + 1]],)

    def _incoming(self, worker: WorkerId) -> Route:
        """Return the host link, where what comes in goes through CPU memory."""
        return self._host(worker) if self._spec.placement == "cpu" else []

    def _single_server(self, key: int, servers: Sequence[LazyLink]) -> Route:
        """Return the link of the one server that keeps a context; none where it takes no time."""
        return (servers[mix(key, 0) % len(servers)],) if servers else ()

    def _copies(self, key: int) -> list[Route]:
        """Return the network servers that keep a context's copies, least busy first; [()] where they take no time."""
        servers = self.network
        if not servers:
            return [()]
        first = self._server(key)
        copies = [servers[(first + k) % len(servers)] for k in range(min(self._spec.replicas, len(servers)))]
        if len(copies) > 1:
            copies.sort(key=LazyLink.load)
        return [(link,) for link in copies]

    # ------------------------------------------------ transfers
    def _alone_s(self, size_bytes: float) -> float:
        """Return the seconds that an object needs at least, striped over as many NICs as it feeds."""
        if size_bytes >= self._full_bytes:
            return size_bytes / self._full_bytes_per_s
        return size_bytes / self._spec.object_bytes_per_s(size_bytes)

    def fetch(
        self,
        key: int,
        tier: int,
        worker: WorkerId,
        source: WorkerId,
        size_bytes: float,
        end: Callable[[RoutedTransfer], object],
    ) -> RoutedTransfer:
        """Bring state to a worker."""
        self.moved_bytes["fetch"] += size_bytes
        routes = self._fetch_routes(key, tier, worker, source)
        return RoutedTransfer(
            self._clock, routes, size_bytes, self._latency_s[tier], self._alone_s(size_bytes), end, self._live
        )

    def stage(self, worker: WorkerId, size_bytes: float, end: Callable[[RoutedTransfer], object]) -> RoutedTransfer:
        """Copy new state from a worker's accelerators into its node's DRAM."""
        self.moved_bytes["stage"] += size_bytes
        return RoutedTransfer(self._clock, [self._host(worker)], size_bytes, self._node_latency_s, 0.0, end, self._live)

    def drain(
        self, key: int, worker: WorkerId, size_bytes: float, end: Callable[[RoutedTransfer], object]
    ) -> RoutedTransfer:
        """Send state from a node to every network server that is to keep it."""
        self.moved_bytes["drain"] += size_bytes * self._spec.replicas
        servers = [link for copy in self._copies(key) for link in copy]
        route = [*self._ups[self._rack_of(worker)], *servers]
        floor_s = self._alone_s(size_bytes)
        return RoutedTransfer(self._clock, [route], size_bytes, self._latency_s[NETWORK], floor_s, end, self._live)

    def write(
        self, key: int, worker: WorkerId, size_bytes: float, end: Callable[[RoutedTransfer], object]
    ) -> RoutedTransfer:
        """Send new state from a worker to every network server that is to keep it, through its node's DRAM."""
        moved = self.moved_bytes
        moved["stage"] += size_bytes
        moved["drain"] += size_bytes * self._spec.replicas
        routes = (
            self._single_write_routes(self._server(key), worker) if self._single else self._write_routes(key, worker)
        )
        floor_s = self._alone_s(size_bytes)
        return RoutedTransfer(self._clock, routes, size_bytes, self._write_latency_s, floor_s, end, self._live)

    def demote(self, key: int, size_bytes: float, end: Callable[[RoutedTransfer], object]) -> RoutedTransfer:
        """Send state from the network tier to an SSD server."""
        self.moved_bytes["demote"] += size_bytes
        disk = self._single_server(key, self.ssd)
        routes = [[*copy, *disk] for copy in self._copies(key)]
        return RoutedTransfer(self._clock, routes, size_bytes, self._latency_s[SSD], 0.0, end, self._live)

    def stop(self, transfer: RoutedTransfer) -> float:
        """Stop a transfer; return the bytes that it had not yet moved."""
        if self._live.pop(transfer, 0) == 0:
            return 0.0
        left = transfer.left_bytes()
        transfer.cancel()
        return left

    def links_changed(self) -> None:
        """A link has stopped or come back: reroute what can be."""
        for transfer in list(self._live):
            self.rerouted += transfer.reroute()

    # ------------------------------------------------ estimates
    def fetch_s(self, key: int, tier: int, worker: WorkerId, source: WorkerId, size_bytes: float) -> float:
        """Estimate a fetch's seconds, were it to begin now and the links to stay as busy as they are."""
        best = math.inf
        for route in self._fetch_routes(key, tier, worker, source):
            rate = self._spec.object_bytes_per_s(size_bytes)
            for link in route:
                rate = min(rate, link.rate_bytes_per_s / (link.load() + 1))
            best = min(best, size_bytes / rate if rate > 0.0 else math.inf)
        return self._latency_s[tier] + best

    def link_bytes(self) -> Iterator[tuple[str, float]]:
        """Yield (link, bytes carried so far); the hosts' links as one."""
        for name, link in self.storage_links().items():
            yield name, link.carried_bytes()
        for rack, uplink in enumerate(self._uplinks):
            yield f"uplink.{rack}", uplink.carried_bytes()
        hosts = [link for links in self._hosts.values() for link in links]
        if hosts:
            yield "hosts", fsum(link.carried_bytes() for link in hosts)

    def __len__(self) -> int:
        return len(self._live)


def _finite(links: Sequence[SharedLink]) -> list[SharedLink]:
    """Return the links that take time."""
    return [link for link in links if link.rate_bytes_per_s < math.inf]
