"""Group requests that name their predecessors into conversations of streams.

Connected requests make a conversation. A stream continues from a request to the first one that follows it in the same
session; any other follower begins a new stream that waits for it. A stated delay takes precedence over a recorded
start, as it runs from the END of the predecessors: the start is then computed from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from scenarios.workloads.blocks import Run
from scenarios.workloads.corpus import Conversation, StreamBuilder, Wait, assumed_service_s
from scenarios.workloads.repairs import Repairs, Skip


@dataclass(slots=True, kw_only=True)
class Request:
    """One request and its predecessors; `after` names the requests that must end first, the continued one first.

    `t_s` None: not recorded. `delay_s` runs from the latest end of `after`; with `edge_delays_s` each predecessor has a
    delay of its own, and the request starts when the last of them is over.
    """

    name: str
    at: str
    session: str
    prompt_tokens: int
    output_tokens: int
    runs: list[Run]
    after: list[str] = field(default_factory=list)
    edge_delays_s: dict[str, float] = field(default_factory=dict)
    t_s: float | None = None
    delay_s: float | None = None
    service_s: float | None = None
    starter: int = 0
    stop: int = 0
    background: bool = False


def conversations(
    requests: Sequence[Request], repairs: Repairs, *, block_tokens: int, shared_clock: bool
) -> list[Conversation]:
    """Return the conversations that these requests make.

    Parameters
    ----------
    requests : sequence of Request
    repairs : Repairs
        Counts duplicate names, predecessors that are missing from the file or start later, and cycles.
    block_tokens : int
    shared_clock : bool
        Whether `t_s` is one clock for all; then each conversation has a start on it.
    """
    known = _known(requests, repairs)
    order = _order(known, repairs)
    _lay_out(order, known)
    return [_conversation(members, known, block_tokens, shared_clock) for members in _components(order)]


def _known(requests: Sequence[Request], repairs: Repairs) -> dict[str, Request]:
    known: dict[str, Request] = {}
    for request in requests:
        if request.name not in known:
            known[request.name] = request
            continue
        problem = f"{request.name!r} appears twice"
        with suppress(Skip):
            repairs.repair("duplicate request id", request.at, problem, "the second is left out")
    removed = {request.name for request in known.values() if not _after_its_parents(request, known, repairs)}
    followers: dict[str, list[str]] = {}
    for request in known.values():
        for name in request.after:
            followers.setdefault(name, []).append(request.name)
    suspects = [name for name in known if name not in removed]
    for name in removed:
        del known[name]
    for name in suspects:  # grows while requests are left out
        if name in known and not _linked(known[name], known, repairs):
            del known[name]
            suspects.extend(followers.get(name, ()))
    return known


def _after_its_parents(request: Request, known: dict[str, Request], repairs: Repairs) -> bool:
    """Move a recorded start to its predecessors' where it lies before them; return False where `skip` leaves it out."""
    starts = [known[name].t_s for name in request.after if name in known]
    latest_s = max((t for t in starts if t is not None), default=None)
    if request.t_s is None or latest_s is None or request.delay_s is not None or request.t_s >= latest_s:
        return True
    problem = f"{request.t_s:g} s lies before its predecessor's start, {latest_s:g} s"
    try:
        repairs.repair("time going backwards", request.at, problem, "taken as the predecessor's start")
    except Skip:
        return False
    request.t_s = latest_s
    return True


def _linked(request: Request, known: dict[str, Request], repairs: Repairs) -> bool:
    """Drop links to requests that are not in the file; return False where `skip` leaves the request out."""
    dangling = [name for name in request.after if name not in known]
    if dangling:
        done = "the link is dropped; a request without links begins a conversation"
        try:
            repairs.repair("dangling parent", request.at, f"{dangling[0]!r} is not in the file", done)
        except Skip:
            return False
        request.after = [name for name in request.after if name in known]
    return True


def _order(known: dict[str, Request], repairs: Repairs) -> list[Request]:
    """Return the requests with every predecessor first (Kahn), in the file's order where that leaves a choice."""
    followers: dict[str, list[str]] = {}
    missing = {}
    for request in known.values():
        missing[request.name] = len(request.after)
        for name in request.after:
            followers.setdefault(name, []).append(request.name)
    ready = [name for name, count in missing.items() if count == 0]
    order: list[Request] = []
    for name in ready:
        order.append(known[name])
        for follower in followers.get(name, ()):
            missing[follower] -= 1
            if missing[follower] == 0:
                ready.append(follower)
    for name in [name for name, count in missing.items() if count]:
        problem = f"{name!r} waits for itself through others; requests may only wait for earlier ones"
        rejection = repairs.rejection("cycle", known[name].at, problem)
        if not isinstance(rejection, Skip):
            raise rejection
    return order


def _end_s(request: Request) -> float:
    assumed = float(assumed_service_s(np.array([request.output_tokens]))[0])
    return (request.t_s or 0.0) + (assumed if request.service_s is None else request.service_s)


def _lay_out(order: Sequence[Request], known: dict[str, Request]) -> None:
    for request in order:
        latest = max((_end_s(known[name]) for name in request.after), default=0.0)
        if request.after and request.edge_delays_s:
            delays = request.edge_delays_s
            request.t_s = max(_end_s(known[name]) + delays.get(name, 0.0) for name in request.after)
        elif request.after and request.delay_s is not None:
            request.t_s = latest + request.delay_s
        elif request.t_s is None:
            request.t_s = latest


def _components(order: Sequence[Request]) -> list[list[Request]]:
    parent: dict[str, str] = {}

    def root_of(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    by_session: dict[str, str] = {}
    for request in order:
        parent[request.name] = request.name
        for name in request.after:
            parent[root_of(request.name)] = root_of(name)
        if request.session:
            same = by_session.setdefault(request.session, request.name)
            parent[root_of(request.name)] = root_of(same)
    groups: dict[str, list[Request]] = {}
    for request in order:
        groups.setdefault(root_of(request.name), []).append(request)
    return list(groups.values())


def _conversation(
    members: list[Request], known: dict[str, Request], block_tokens: int, shared_clock: bool
) -> Conversation:
    start_s = min(request.t_s or 0.0 for request in members)
    builders: list[StreamBuilder] = []
    place: dict[str, Wait] = {}
    for request in members:
        stream = _stream_of(request, known, place, builders)
        builder = builders[stream]
        waits = tuple(place[name] for name in request.after if place[name] != (stream, len(builder) - 1))
        if waits:
            builder.waits[len(builder)] = waits
        place[request.name] = (stream, len(builder))
        before = next((name for name in request.after if place[name] == (stream, len(builder) - 1)), None)
        think_s = request.delay_s
        if request.edge_delays_s and before is not None:
            think_s = max(0.0, (request.t_s or 0.0) - _end_s(known[before]))
        builder.add(
            t_s=(request.t_s or 0.0) - start_s,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
            think_s=think_s,
            service_s=request.service_s,
            runs=request.runs,
            starter=request.starter,
            stop=request.stop,
        )
    name = members[0].session or members[0].name
    return Conversation(
        name=name,
        block_tokens=block_tokens,
        streams=tuple(builder.build() for builder in builders),
        start_s=start_s if shared_clock else None,
    )


def _stream_of(
    request: Request, known: dict[str, Request], place: dict[str, Wait], builders: list[StreamBuilder]
) -> int:
    """Return the stream that the request continues, or the number of a new one."""
    for name in request.after:
        stream, ordinal = place[name]
        if ordinal == len(builders[stream]) - 1 and known[name].session == request.session:
            return stream
    relation: Literal["root", "spawn", "background"] = "root" if not builders else "spawn"
    if request.background and builders:
        relation = "background"
    builders.append(StreamBuilder("" if not builders else request.session or request.name, relation))
    return len(builders) - 1
