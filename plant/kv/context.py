"""A context that is kept between turns: where its blocks lie, what its session waits for, and its phase.

The phases and the moves between them stand in one table; a move against it raises with the context's story. Contexts
are changed by `plant.kv.context_ledger` alone, which books the bytes of each change, and by their queues.
"""

from __future__ import annotations

from typing import NewType, Protocol

from orchestrator.errors import SteadyflowError
from orchestrator.turn import KvChain, WorkerId
from plant.kv.chains import continues, shared_blocks
from plant.kv.spec import NETWORK, TIER_NAMES

# A turn is under way; a tool runs; a person reads; the session has ended; left behind by a compaction or a branch.
BUSY, TOOL, HUMAN, ENDED, COMPACTED, UNKNOWN = "busy", "tool", "human", "ended", "compacted", "unknown"
KINDS = (BUSY, TOOL, HUMAN, ENDED, COMPACTED, UNKNOWN)

Phase = NewType("Phase", int)
"""What is being done to a context; plain ints, as a table is read twice as fast by them."""

PHASE_NAMES = ("at rest", "staging", "waiting", "draining", "demoting", "gone")
PHASES = tuple(Phase(k) for k in range(len(PHASE_NAMES)))
AT_REST, STAGING, WAITING, DRAINING, DEMOTING, GONE = PHASES
TRANSITIONS: dict[Phase, tuple[Phase, ...]] = {
    AT_REST: (STAGING, DRAINING, DEMOTING, GONE),  # GONE: discarded, or replaced by the session's next context
    STAGING: (WAITING, AT_REST),  # copied into its node's DRAM; AT_REST from here on: it is there, or was halted
    WAITING: (DRAINING, AT_REST),  # in its node, until the network tier has room
    DRAINING: (AT_REST,),  # on its way to the network tier
    DEMOTING: (AT_REST,),  # on its way from the network tier to SSD
}
_ALLOWED = tuple(TRANSITIONS.get(phase, ()) for phase in PHASES)
_PAST_BITS, _PAST_MASK = 3, (1 << 24) - 1  # the last eight phases, three bits each, in one machine word


class IllegalPhase(SteadyflowError):
    """A context was moved against the transition table.

    Parameters
    ----------
    context : Context
    to : Phase
    """

    def __init__(self, context: Context, to: Phase) -> None:
        story = " -> ".join(context.story())
        super().__init__(
            f"context {context.key} may not go from {PHASE_NAMES[context.phase]} to {PHASE_NAMES[to]}; "
            f"its story: {story}; {context.describe()}"
        )


class PinnedReader(Protocol):
    """A fetch that relies on what a kept context holds."""

    def hold_alone(self) -> None:
        """Hold what is needed itself: the context is about to be given up."""
        ...


class Context:
    """One context in the store.

    Attributes
    ----------
    key : int
        Its session; negative for one that its session has left behind.
    chain : KvChain
    blocks, settled : int
        Length of the chain, and how many leading blocks lie in tier `home`; the others are in its node, on their way.
    home, tail : int
        Tier of the settled blocks, and tier of the last block.
    private_bytes : int
        What belongs to it alone and lies in tier `tail`: the partial last block, the generated suffix, a hybrid's last
        snapshot.
    deferred_bytes : int
        The part of them that is sent with the session's next write: an answer's suffix has no block ids, so nothing
        asks for it before.
    bounce_bytes : int
        In its node's DRAM on their way to the network tier.
    node, node_bytes : WorkerId, int
        The node whose DRAM it uses, and how much of it in all.
    worker : WorkerId
        Who had it last.
    pins : int
        Reasons not to evict it now.
    reader : PinnedReader or None
        A fetch that relies on this context's own holds.
    kind : str
        What its session waits for, one of KINDS.
    tokens, since_s, stamp
        Positions; when it was last used; its place in the order of uses.
    end_marked : bool
        The tree knows where it ends (a hybrid has a snapshot there).
    """

    __slots__ = (
        "_compared", "_past", "_shared", "blocks", "bounce_bytes", "chain", "deferred_bytes", "end_marked", "home",
        "key", "kind", "node", "node_bytes", "phase", "pins", "private_bytes", "reader", "settled", "since_s", "stamp",
        "tail", "tokens", "worker",
    )  # fmt: skip

    def __init__(self, key: int, chain: KvChain, blocks: int, worker: WorkerId) -> None:
        self.key, self.chain, self.blocks, self.worker = key, chain, blocks, worker
        self.tokens = self.settled = self.private_bytes = self.deferred_bytes = self.bounce_bytes = 0
        self.pins = self.stamp = self.node_bytes = 0
        self.node = worker
        self.reader: PinnedReader | None = None
        self.home = self.tail = NETWORK
        self.kind, self.phase = BUSY, AT_REST
        self.since_s = 0.0
        self.end_marked = False
        self._compared: KvChain | None = None  # the chain that `_shared` was worked out for
        self._shared = self._past = 0

    def enter(self, to: Phase) -> None:
        """Move to another phase.

        Raises
        ------
        IllegalPhase
            The table does not allow it.
        """
        phase = self.phase
        if to not in _ALLOWED[phase]:
            raise IllegalPhase(self, to)
        self._past = (self._past << _PAST_BITS | phase + 1) & _PAST_MASK
        self.phase = to

    def story(self) -> list[str]:
        """Return the names of its last phases, at most nine, up to the present one."""
        names, past = [PHASE_NAMES[self.phase]], self._past
        while past:
            names.append(PHASE_NAMES[(past & (1 << _PAST_BITS) - 1) - 1])
            past >>= _PAST_BITS
        return names[::-1]

    def describe(self) -> str:
        """Return where it lies, in one line."""
        return (
            f"{self.kind} since {self.since_s:.6g} s, {self.settled} of {self.blocks} blocks settled in "
            f"{TIER_NAMES[self.home]}, last block in {TIER_NAMES[self.tail]}, {self.pins} pins"
        )

    def pin(self, reader: PinnedReader | None = None) -> None:
        """Keep it from eviction; `reader` relies on what it holds."""
        self.pins += 1
        if reader is not None:
            self.reader = reader

    def unpin(self, reader: PinnedReader | None = None) -> None:
        """Take that back."""
        self.pins -= 1
        if reader is not None and self.reader is reader:
            self.reader = None

    def put_chain(self, chain: KvChain, blocks: int, settled: int) -> None:
        """Change what it is a context of."""
        self.chain, self.blocks, self.settled, self._compared = chain, blocks, settled, None

    def shared_with(self, chain: KvChain) -> int:
        """Return how many leading blocks it has in common with its session's next context; the last answer is kept."""
        if self._compared is not chain:
            self._compared = chain
            self._shared = self.blocks if continues(self.chain, chain) else shared_blocks(self.chain, chain)
        return self._shared
