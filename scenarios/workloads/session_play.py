"""One live play of a session tree: which of its requests wait, are timed or are in flight."""

from __future__ import annotations

from typing import Any

from orchestrator.rng import mix
from scenarios.workloads.script import Node, Script


class SessionPlay:
    """One live play of a script."""

    __slots__ = (
        "abandoned",
        "arrived_s",
        "earliest_s",
        "first_played",
        "in_flight",
        "key",
        "keys",
        "known_scope",
        "open_waits",
        "pending",
        "play",
        "primer",
        "scope",
        "script",
        "turns_left",
        "warmup_left",
        "warmup_sent",
    )  # fmt: skip

    def __init__(self, script: Script, key: int, scope: int, play: int, known_scope: int) -> None:
        self.script = script
        self.key = key
        self.scope = scope
        self.known_scope = known_scope
        self.play = play
        self.keys = [mix(key, s) for s in range(len(script.streams))]
        self.turns_left = script.requests
        self.first_played = [0] * len(script.streams)  # the first request of each stream that is replayed
        self.in_flight = 0
        self.abandoned = False
        self.arrived_s = -1.0  # of its latest turn
        self.pending: dict[Node, tuple[float, Any]] = {}
        self.open_waits: dict[Node, int] = {}
        self.earliest_s: dict[Node, float] = {}
        self.primer: Node | None = None
        self.warmup_left = 0
        self.warmup_sent = 0
