"""Doubts about a whole trace: units of time off by a thousand, impossible lengths, and the grain of its clock.

A unit that is wrong gives figures that are only odd, so each is compared with what no service does: requests or prompt
tokens a second that no cluster takes, a file that is over before one of its answers could be, answers that come faster
than any engine decodes, waits of hours in most turns. Limits are wide; a doubt is counted and the trace kept.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from orchestrator.rng import stream_key, uniform_block
from scenarios.workloads.corpus import Conversation, Corpus

FEWEST_ROWS, FEWEST_FOR_SPAN = 100, 20
SLOWEST_PER_S, FASTEST_PER_S = 1e-4, 1e3
"""Public traces of services run at 1e-3 to 200 requests a second."""
FASTEST_WITH_DECIMALS_PER_S = 50.0
"""Above it, stamps with decimals in a format of integer milliseconds are seconds."""
MOST_PROMPT_TOKENS_PER_S = 1e7
"""About a thousand accelerators that do nothing but prefill at 10,000 tokens a second each."""
FASTEST_TOKEN_S, SLOWEST_TOKEN_S = 5e-4, 20.0
"""No engine decodes 2,000 tokens a second for one request, and no person waits 20 s for each."""
LONGEST_CONTEXT_TOKENS = 10**7
LONG_WAIT_S, SHORT_WAIT_S = 6 * 3_600.0, 0.02
"""The median wait of recorded agents is 10 s (tools) to 200 s (people)."""
MILLISECONDS = ("mooncake", "aiperf")
MOST_DISTINCT, LEAST_FILLED, GRID_TOLERANCE = 0.9, 1 / 3, 0.02
UNIT_ADVICE = "--time-unit states the unit of the stamps"


def doubt(corpus: Corpus, at: str) -> None:
    """Count in the corpus's repairs what cannot be as it stands."""
    stamps = shared_stamps(corpus)
    if stamps is not None and corpus.format != "servegen" and (problem := _odd_rate(corpus, stamps)):
        corpus.repairs.doubt("implausible rate", at, problem, UNIT_ADVICE)
    streams = [stream for conversation in corpus.conversations for stream in conversation.streams if len(stream)]
    longest = max((int(stream.prompt_tokens.max()) for stream in streams), default=0)
    if longest > LONGEST_CONTEXT_TOKENS:
        problem = f"a prompt of {longest:,} tokens; the longest context served is {LONGEST_CONTEXT_TOKENS:,}"
        corpus.repairs.doubt("implausible length", at, problem, "is it a count of tokens?")
    waits = _known([stream.think_s[1:] for stream in streams if stream.relation != "independent"])
    waits = waits[waits > 0.0]
    if len(waits) >= FEWEST_FOR_SPAN and not (
        np.quantile(waits, 0.95) > SHORT_WAIT_S and np.median(waits) < LONG_WAIT_S
    ):
        problem = f"the median wait between turns is {np.median(waits):.3g} s"
        corpus.repairs.doubt("implausible waits", at, problem, UNIT_ADVICE)
    per_token = _known([stream.service_s / stream.output_tokens for stream in streams])
    per_token = per_token[per_token > 0.0]
    if len(per_token) >= FEWEST_FOR_SPAN and not FASTEST_TOKEN_S < np.median(per_token) < SLOWEST_TOKEN_S:
        problem = f"answers take {np.median(per_token):.3g} s a token in the median"
        corpus.repairs.doubt("implausible service times", at, problem, UNIT_ADVICE)


def shared_stamps(corpus: Corpus) -> NDArray[np.float64] | None:
    """Return all starts on the clock that the conversations share, or None where there is no shared clock."""
    if any(c.start_s is None for c in corpus.conversations):
        return None
    starts = [s.t_s + (c.start_s or 0.0) for c in corpus.conversations for s in c.streams]
    return np.concatenate(starts)


def _known(columns: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    values = np.concatenate(columns) if columns else np.zeros(0)
    return values[~np.isnan(values)]


def _odd_rate(corpus: Corpus, stamps: NDArray[np.float64]) -> str:
    """Return what is impossible about the stamps; '' where nothing is."""
    rows, span_s = len(stamps), float(stamps.max() - stamps.min())
    if rows < FEWEST_FOR_SPAN:
        return ""
    streams = [stream for conversation in corpus.conversations for stream in conversation.streams if len(stream)]
    rate_per_s = rows / span_s if span_s > 0.0 else float("inf")
    sentence = f"{rows} requests in {span_s:.6g} s are {rate_per_s:.4g} per second"
    longest_tokens = max(int(stream.output_tokens.max()) for stream in streams)
    if rows >= FEWEST_ROWS and not SLOWEST_PER_S <= rate_per_s <= FASTEST_PER_S:
        return sentence
    if span_s < longest_tokens * FASTEST_TOKEN_S:
        return f"{sentence}, and over before its longest answer, {longest_tokens} tokens, could be"
    prompt_tokens = sum(int(stream.prompt_tokens.sum()) for stream in streams)
    if rows >= FEWEST_ROWS and prompt_tokens > MOST_PROMPT_TOKENS_PER_S * span_s:
        return f"{sentence} with {prompt_tokens / span_s:.3g} prompt tokens per second"
    milliseconds = np.abs(stamps) * 1e3
    with_decimals = float((np.abs(milliseconds - np.round(milliseconds)) > 1e-4).mean())
    if corpus.format in MILLISECONDS and with_decimals > 0.5 and rate_per_s > FASTEST_WITH_DECIMALS_PER_S:
        return f"{sentence}, and the stamps have decimals where integer milliseconds are usual"
    return ""


def grain_s(stamps: NDArray[np.float64]) -> float | None:
    """Return the grain of a clock whose stamps fall on a coarse grid, seconds; None where they do not.

    Coarse: fewer stamps than rows, all steps near multiples of one, and most points of that grid in use (rows that
    truly come together leave most of a fine grid empty).
    """
    distinct = np.unique(np.round(stamps, 6))
    if len(stamps) < FEWEST_ROWS or not 3 <= len(distinct) <= MOST_DISTINCT * len(stamps):
        return None
    steps = np.diff(distinct)
    grain = float(np.median(steps[steps < 1.5 * steps.min()]))
    off = np.abs(steps / grain - np.round(steps / grain))
    filled = (len(distinct) - 1) * grain / float(distinct[-1] - distinct[0])
    return grain if float((off <= GRID_TOLERANCE).mean()) >= 0.99 and filled >= LEAST_FILLED else None


def with_grain(corpus: Corpus, at: str, *, spread: bool, seed: int) -> Corpus:
    """Count the grain of a coarse clock; with `spread`, draw each start uniformly within its grain."""
    stamps = shared_stamps(corpus)
    grain = None if stamps is None else grain_s(stamps)
    if stamps is None or grain is None:
        return corpus
    kind = f"coarse stamps, steps of {grain:.3g} s"
    held = f"{len(stamps):,} rows on {len(np.unique(stamps)):,} stamps"
    if not spread:
        done = f"{held}; swings at this period are the clock's (--spread-stamps spreads rows within a step)"
        corpus.repairs.note(kind, at, done)
        return corpus
    corpus.repairs.note(kind, at, f"{held}; spread within the steps, as asked, seed {seed}")
    key = stream_key(seed, "trace.spread")
    return replace(corpus, conversations=[_spread(c, grain, key, k) for k, c in enumerate(corpus.conversations)])


def _spread(conversation: Conversation, grain: float, key: int, number: int) -> Conversation:
    stream = conversation.streams[0]
    if stream.relation != "independent":
        shift_s = grain * float(uniform_block(key, number, 1, 0)[0])
        return replace(conversation, start_s=(conversation.start_s or 0.0) + shift_s)
    draws = np.asarray(uniform_block(key, 0, len(stream), 1))
    return replace(conversation, streams=(replace(stream, t_s=stream.t_s + grain * draws),))
