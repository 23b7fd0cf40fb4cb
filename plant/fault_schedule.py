"""When faults strike a cluster and when they end: the worst of those that are active on a target is in force."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from orchestrator.clock import Clock
from orchestrator.turn import WorkerId
from plant.faults import FaultSpec
from plant.fleet import Fleet
from plant.links.shared_link import Link


class FaultSchedule:
    """The faults of a cluster.

    Parameters
    ----------
    clock : Clock
    fleet : Fleet
        The workers and the racks' uplinks.
    """

    def __init__(self, clock: Clock, fleet: Fleet) -> None:
        self._clock, self._fleet = clock, fleet
        self._active: list[FaultSpec] = []
        self._storage_links: dict[str, Link] = {}
        self._storage_rates: dict[str, float] = {}
        self._links_changed: Callable[[], None] = lambda: None
        self._lose_server: Callable[[str, Container[str]], int] = lambda name, gone: 0

    def set_storage_links(
        self,
        links: Mapping[str, Link],
        changed: Callable[[], None],
        lose_server: Callable[[str, Container[str]], int],
    ) -> None:
        """Set the links of storage servers, which faults may name.

        `changed` is called when the rate of a link changes; `lose_server(name, gone)` when a server is lost beside
        those that are `gone` already: it returns how many contexts had no other copy.
        """
        self._lose_server = lose_server
        self._storage_links = dict(links)
        self._storage_rates = {name: link.rate_bytes_per_s for name, link in links.items()}
        self._links_changed = changed

    def schedule(self, faults: Sequence[FaultSpec]) -> None:
        """Schedule the faults.

        Raises
        ------
        ValueError
            A fault of a worker, rack or link that does not exist.
        """
        workers, racks = len(self._fleet.nodes), len(self._fleet.racks)
        for fault in faults:
            if fault.worker is not None and not 0 <= fault.worker < workers:
                raise ValueError(f"fault at {fault.at_s:g} s: worker {fault.worker} of {workers}")
            if fault.link is not None and fault.link not in self._storage_links:
                known = ", ".join(self._storage_links) or "none that takes time"
                raise ValueError(f"fault at {fault.at_s:g} s: no storage link {fault.link}; there are {known}")
            if fault.rack is not None and not 0 <= fault.rack < racks:
                raise ValueError(f"fault at {fault.at_s:g} s: rack {fault.rack} of {racks}")
            self._clock.at(fault.at_s, self._start, fault)
            if fault.until_s is not None:
                self._clock.at(fault.until_s, self._end, fault)

    def epoch(self, worker: WorkerId) -> int:
        """Return the present epoch of a worker."""
        return self._fleet.nodes[worker].epoch

    def strike(self, fault: FaultSpec) -> None:
        """Begin a fault now; it ends by itself."""
        self._start(fault)
        if fault.until_s is not None:
            self._clock.at(fault.until_s, self._end, fault)

    def _start(self, fault: FaultSpec) -> None:
        if fault.kind == "lost" and fault.worker is not None and not self._same(fault):
            self._fleet.lose(self._fleet.nodes[fault.worker])
        self._active.append(fault)
        if fault.kind == "storage_lost" and fault.link is not None:
            gone = {str(other.link) for other in self._active if other.kind == "storage_lost"}
            contexts = self._lose_server(fault.link, gone)
            self._fleet.report("storage_lost", None, f"{fault.link}: {contexts} contexts")
        self._apply_worst(fault)

    def _end(self, fault: FaultSpec) -> None:
        self._active.remove(fault)
        self._apply_worst(fault)
        if fault.kind == "lost" and fault.worker is not None and not self._same(fault):
            self._fleet.restore(self._fleet.nodes[fault.worker])

    def _same(self, fault: FaultSpec) -> list[FaultSpec]:
        """Return the active faults of the same kind and target; the target recovers when the last has ended."""
        return [other for other in self._active if other.target == fault.target]

    def _apply_worst(self, fault: FaultSpec) -> None:
        """Slow the target down by its worst active fault."""
        factor = max((other.factor for other in self._same(fault)), default=1.0)
        if fault.on_link:
            self._set_link(fault, factor)
        elif fault.kind == "slowed" and fault.worker is not None:
            self._fleet.slow(self._fleet.nodes[fault.worker], factor)

    def _set_link(self, fault: FaultSpec, factor: float) -> None:
        fleet = self._fleet
        if fault.rack is not None:
            fleet.links[fault.rack].set_rate(fleet.racks[fault.rack].uplink_bytes_per_s / factor)
            name = f"rack {fault.rack}"
        else:
            name = str(fault.link)
            self._storage_links[name].set_rate(self._storage_rates[name] / factor)
        self._links_changed()
        fleet.report("link_up" if factor == 1.0 else "link_down", None, name)
