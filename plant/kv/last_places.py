"""Which worker last filled, and which last decoded, a context of each scope: where a router may send its next turn."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.turn import KvChain, WorkerId
from plant.kv.context import BUSY


class LastPlaces:
    """Workers by scope."""

    def __init__(self) -> None:
        self.filled: dict[int, WorkerId] = {}
        self.decoded: dict[int, WorkerId] = {}

    def note(self, chain: KvChain, kind: str, worker: WorkerId) -> None:
        """A worker has filled a context (`kind` is BUSY) or decoded it (any other)."""
        (self.filled if kind == BUSY else self.decoded)[chain.runs[-1].scope] = worker

    def forget(self, scope: int) -> None:
        """Nothing is kept of a scope any more."""
        self.filled.pop(scope, None)
        self.decoded.pop(scope, None)

    def near(self, chain: KvChain) -> Sequence[WorkerId]:
        """Return the workers that last decoded and last filled a context of the chain's last scope, each once."""
        if not chain.runs:
            return ()
        scope = chain.runs[-1].scope
        return tuple(dict.fromkeys(table[scope] for table in (self.decoded, self.filled) if scope in table))
