"""Compile a conversation for replay: everything that a turn needs, computed once at load.

Gaps run from END to start. Request k of a stream starts `gap_s[k]` after the last of its predecessors has ended: the
request before it in its stream, and those that it waits for in others. Gaps exclude the recorded service time:

    gap = think_s where recorded and the request waits for nothing else,
          else max(0, recorded start - latest recorded end of its predecessors)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from orchestrator.rng import mix
from orchestrator.turn import KvChain, KvRun, new
from scenarios.workloads import blocks
from scenarios.workloads.blocks import Run
from scenarios.workloads.corpus import STOPS, Conversation, Corpus, Stream

Node = tuple[int, int]
"""(stream, ordinal) of a request."""
SHARED_SCOPE = 0x5EED_0F_5EED
"""Mixed into the scope of prefixes shared by many sessions; an arbitrary constant."""


@dataclass(frozen=True, slots=True)
class StreamScript:
    """One stream as lists, one entry a request; `after[k]` are requests of other streams that wait for request k.

    `known[k]` are the leading runs of request k that other conversations have as well, and `runs[k]` the rest; `known`
    is empty where ids are not global.
    """

    t_s: list[float]
    gap_s: list[float]
    prompt_tokens: list[int]
    output_tokens: list[int]
    service_s: list[float | None]
    waits_for: list[str]
    runs: list[tuple[Run, ...]]
    headed: list[bool]
    head: KvRun | None
    after: dict[int, list[Node]]
    known: list[tuple[Run, ...]]

    def chain(self, k: int, scope: int, block_tokens: int, known_scope: int = 0) -> KvChain:
        """Return the prompt's chain: the shared head where there is one, then the stream's runs under this scope.

        `known_scope` is that of ids that other conversations have as well: they keep it on every play.
        """
        runs = [new(KvRun, (scope, first, count)) for first, count in self.runs[k]]
        if self.known:
            runs = [new(KvRun, (known_scope, first, count)) for first, count in self.known[k]] + runs
        if self.headed[k] and self.head is not None:
            runs.insert(0, self.head)
        return new(KvChain, (tuple(runs), block_tokens))


@dataclass(frozen=True, slots=True)
class Script:
    """A session tree compiled for replay. `gates` maps requests that wait for other streams to those predecessors."""

    name: str
    block_tokens: int
    streams: tuple[StreamScript, ...]
    gates: dict[Node, tuple[Node, ...]]
    requests: int
    duration_s: float
    start_s: float | None


def script(conversation: Conversation, *, share_prefix: bool = False, known: blocks.SeenBlocks | None = None) -> Script:
    """Compile a conversation for replay.

    Parameters
    ----------
    conversation : Conversation
    share_prefix : bool
        Give the leading tools and system prompt a separate scope, equal for all streams of equal tool and system
        lengths: sessions then share it, as sessions of one client version do.
    known : SeenBlocks, optional
        Where ids are global: those that other conversations have as well.
    """
    ends = [stream.ends_s() for stream in conversation.streams]
    gates = {
        (s, k): waits for s, stream in enumerate(conversation.streams) for k, waits in sorted(stream.waits.items())
    }
    after: list[dict[int, list[Node]]] = [{} for _ in conversation.streams]
    for node, waits in gates.items():
        for s, k in waits:
            after[s].setdefault(k, []).append(node)
    starts = _causal_starts(conversation, gates)
    indexes = range(len(conversation.streams))
    scripts = [_stream_script(conversation, s, starts[s], ends, after[s], share_prefix) for s in indexes]
    stream_scripts = tuple(scripts if known is None else [_parted(stream_script, known) for stream_script in scripts])
    return Script(
        name=conversation.name,
        block_tokens=conversation.block_tokens,
        streams=stream_scripts,
        gates=gates,
        requests=conversation.requests,
        duration_s=conversation.duration_s,
        start_s=conversation.start_s,
    )


def scripts(corpus: Corpus, *, share_prefix: bool = False) -> list[Script]:
    """Compile every conversation of a corpus; an independent row becomes a session of one request.

    Where ids are global, those of one session alone get a fresh name on every play, so that a session that is drawn
    twice does not find its first play in the cache; those that several sessions have keep theirs.
    """
    out: list[Script] = []
    known = blocks.in_several(_sessions(corpus)) if corpus.scope == "global" else None
    for conversation in corpus.conversations:
        if conversation.streams[0].relation == "independent":
            out.extend(_single(conversation, k, known) for k in range(len(conversation.streams[0])))
        else:
            out.append(script(conversation, share_prefix=share_prefix, known=known))
    return out


def _sessions(corpus: Corpus) -> Iterator[list[list[Run]]]:
    """Yield the prompts' chains of each session; a row that stands alone is one."""
    for conversation in corpus.conversations:
        if conversation.streams[0].relation == "independent":
            yield from ([chain] for chain in conversation.streams[0].all_runs())
        else:
            yield [chain for stream in conversation.streams for chain in stream.all_runs()]


def _parted(stream: StreamScript, known: blocks.SeenBlocks) -> StreamScript:
    """Return the stream with its prompts parted into ids that others know and ids of its own."""
    shared = [known.leading_blocks(runs) for runs in stream.runs]
    return replace(
        stream,
        known=[tuple(blocks.head(runs, count)) for runs, count in zip(stream.runs, shared)],
        runs=[tuple(blocks.tail(runs, count)) for runs, count in zip(stream.runs, shared)],
    )


def _single(conversation: Conversation, k: int, known: blocks.SeenBlocks | None) -> Script:
    stream = conversation.streams[0]
    service_s = float(stream.service_s[k])
    part = StreamScript(
        t_s=[0.0],
        gap_s=[0.0],
        prompt_tokens=[int(stream.prompt_tokens[k])],
        output_tokens=[int(stream.output_tokens[k])],
        service_s=[None if service_s != service_s else service_s],
        waits_for=[""],
        runs=[tuple(stream.runs(k))],
        headed=[False],
        head=None,
        after={},
        known=[],
    )
    if known is not None:
        part = _parted(part, known)
    return Script(
        name=f"{conversation.name}[{k}]",
        block_tokens=conversation.block_tokens,
        streams=(part,),
        gates={},
        requests=1,
        duration_s=0.0,
        start_s=(conversation.start_s or 0.0) + float(stream.t_s[k]),
    )


def _causal_starts(conversation: Conversation, gates: dict[Node, tuple[Node, ...]]) -> list[list[float]]:
    """Return the recorded starts, delayed where a request would start before one that it waits for.

    Clocks of a session tree may disagree by seconds; a cut through the recorded run must separate started requests
    from later ones, and no request may start before its predecessors.
    """
    starts = [np.maximum.accumulate(stream.t_s).tolist() for stream in conversation.streams]
    for _ in range(len(gates) + 1):
        moved = False
        for (s, k), waits in gates.items():
            cause_s = max(starts[ws][wk] for ws, wk in waits)
            if starts[s][k] < cause_s:
                moved = True
                starts[s][k:] = [max(t, cause_s) for t in starts[s][k:]]
        if not moved:
            break
    return starts


def _stream_script(
    conversation: Conversation,
    s: int,
    starts: list[float],
    ends: list[np.ndarray],
    after: dict[int, list[Node]],
    share_prefix: bool,
) -> StreamScript:
    stream = conversation.streams[s]
    recorded_runs = stream.all_runs()
    head, headed, runs = None, [False] * len(recorded_runs), [tuple(r) for r in recorded_runs]
    prefix_blocks = (stream.tool_tokens + stream.system_tokens) // conversation.block_tokens
    if share_prefix and prefix_blocks and recorded_runs:
        head, headed, runs = _split_head(stream, recorded_runs, prefix_blocks)
    # Without a recorded service time, use the one from which the ends were derived: gaps run from those ends.
    recorded = stream.service_s
    service: list[float | None] = np.where(np.isnan(recorded), ends[s] - stream.t_s, recorded).tolist()
    return StreamScript(
        t_s=starts,
        gap_s=_gaps(stream, ends, s),
        prompt_tokens=stream.prompt_tokens.tolist(),
        output_tokens=stream.output_tokens.tolist(),
        service_s=service,
        waits_for=_waits_for(stream),
        runs=runs,
        headed=headed,
        head=head,
        after=after,
        known=[],
    )


def _waits_for(stream: Stream) -> list[str]:
    """Return what the session waits for after each answer (tool, human); a sub-agent's last answer is its end."""
    by_stop = {STOPS.index("tool_use"): "tool", STOPS.index("end_turn"): "human"}
    waits = [by_stop.get(stop, "") for stop in stream.stop.tolist()]
    if waits and stream.relation in ("spawn", "background"):
        waits[-1] = "ended"
    return waits


def _split_head(
    stream: Stream, runs: list[list[Run]], prefix_blocks: int
) -> tuple[KvRun, list[bool], list[tuple[Run, ...]]]:
    """Split each chain that begins with the stream's tools and system prompt into that head and the rest."""
    shared = blocks.head(runs[0], prefix_blocks)
    scope = mix(mix(SHARED_SCOPE, stream.tool_tokens), stream.system_tokens)
    headed = [blocks.common(shared, chain) == prefix_blocks for chain in runs]
    remaining = [tuple(blocks.tail(c, prefix_blocks) if is_headed else c) for c, is_headed in zip(runs, headed)]
    return KvRun(scope, 0, prefix_blocks), headed, remaining


def _gaps(stream: Stream, ends: list[np.ndarray], s: int) -> list[float]:
    starts, thinks, own_ends = stream.t_s.tolist(), stream.think_s.tolist(), ends[s].tolist()
    gaps = []
    for k, start in enumerate(starts):
        waits = stream.waits.get(k, ())
        if k and not waits:
            think = thinks[k]
            gap = start - own_ends[k - 1] if think != think else think
        else:
            latest = max(_predecessors(waits, ends, own_ends[k - 1] if k else None), default=0.0)
            gap = start - latest
        gaps.append(max(0.0, gap))
    return gaps


def _predecessors(waits: Iterable[Node], ends: list[np.ndarray], previous_end_s: float | None) -> list[float]:
    return [float(ends[ws][wk]) for ws, wk in waits] + ([previous_end_s] if previous_end_s is not None else [])
