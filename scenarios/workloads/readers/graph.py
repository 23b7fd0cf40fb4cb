"""Group requests that name their predecessors into conversations of streams.

Connected requests make a conversation. A stream continues from a request to the first one that follows it in the same
session; any other follower begins a new stream that waits for it. A stated delay takes precedence over a recorded
start, as it runs from the END of the predecessors: the start is then computed from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from scenarios.workloads.blocks import Run
from scenarios.workloads.corpus import Conversation, StreamBuilder, Wait, assumed_service_s
from scenarios.workloads.repairs import Repairs


@dataclass(slots=True, kw_only=True)
class Request:
    """One request and its predecessors; `after` names the requests that must end first, the continued one first.

    `t_s` None: not recorded. `delay_s` runs from the latest end of `after`.
    """

    name: str
    at: str
    session: str
    prompt_tokens: int
    output_tokens: int
    runs: list[Run]
    after: list[str] = field(default_factory=list)
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
        Counts duplicate names, predecessors that are missing from the file, and cycles.
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
        if request.name in known:
            repairs.repair(
                "duplicate request id", request.at, f"{request.name!r} appears twice", "the second is left out"
            )
            continue
        known[request.name] = request
    for request in known.values():
        dangling = [name for name in request.after if name not in known]
        if dangling:
            problem = f"{dangling[0]!r} is not in the file"
            repairs.repair(
                "dangling parent",
                request.at,
                problem,
                "the link is dropped; a request without links begins a conversation",
            )
            request.after = [name for name in request.after if name in known]
    return known


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
    if len(order) < len(known):
        stuck = next(name for name, count in missing.items() if count)
        raise repairs.rejection(
            "cycle",
            known[stuck].at,
            f"{stuck!r} waits for itself through others; requests may only wait for earlier ones",
        )
    return order


def _end_s(request: Request) -> float:
    assumed = float(assumed_service_s(np.array([request.output_tokens]))[0])
    return (request.t_s or 0.0) + (assumed if request.service_s is None else request.service_s)


def _lay_out(order: Sequence[Request], known: dict[str, Request]) -> None:
    for request in order:
        latest = max((_end_s(known[name]) for name in request.after), default=0.0)
        if request.after and request.delay_s is not None:
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
        builder.add(
            t_s=(request.t_s or 0.0) - start_s,
            prompt_tokens=request.prompt_tokens,
            output_tokens=request.output_tokens,
            think_s=request.delay_s,
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
