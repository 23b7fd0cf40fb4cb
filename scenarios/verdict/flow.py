"""Whether the decode pool is fed: utilisation, starvation, the flow word, the cost of a swing, and the headline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orchestrator.catalogue import COMMAND, HEADLINE
from scenarios.catalogue.signals import JUDGED
from scenarios.catalogue.verdict import Cost, FlowWord, SignalVerdict, Word
from scenarios.verdict.types import Floats

# A pool below this share of its slots, with work waiting, is starved; more of the window than this and the run is.
STARVED_BELOW_RATIO, STARVED_SHARE = 0.9, 0.05
SATURATED_RATIO = 0.95
# What a loop's own actuator does. It speaks for the run only where a stock or the pool swings with it, or where the
# swing costs this share of the slots' time: a relay at work on a pool that stays full is no cycle of the factory.
ACTUATOR_RATES, COST_THAT_MATTERS_RATIO = frozenset({"admission_per_s"}), 0.01

# A run's headline takes the worst word among its signals.
SEVERITY: tuple[Word, ...] = (
    "stalled",
    "unbounded",
    "growing",
    "limit_cycle",
    "hunting",
    "echo",
    "quasi_cycle",
    "driven",
    "ringing",
    "undecided",
    "steady",
    "constant",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """How full the decode pool was kept, over the window.

    `decode_utilization_ratio` is the mean occupancy; `starved_ratio` the share of time below 0.9 N while work waited
    at the door; `waiting_ratio` the share of time when work waited; `lost_ratio` the share of the window's slot time
    that stood idle while work waited.
    """

    decode_utilization_ratio: float
    starved_ratio: float
    waiting_ratio: float
    lost_ratio: float


def flow_of(occupancy_ratio: Floats, backlog_turns: Floats) -> Flow:
    """Return the flow of a run.

    Parameters
    ----------
    occupancy_ratio : ndarray
        Bin means of the share of decode slots in use, shape (n,); NaN while there was no slot: such a bin does not
        count in the utilisation, and starves where work waits.
    backlog_turns : ndarray
        The least backlog in each bin, shape (n,): work waits in a bin only where the door was never empty, so that a
        turn that is let in a moment after it came counts as no wait.
    """
    if len(occupancy_ratio) == 0:
        return Flow(decode_utilization_ratio=0.0, starved_ratio=0.0, waiting_ratio=0.0, lost_ratio=0.0)
    waiting = backlog_turns > 0
    there = np.isfinite(occupancy_ratio)
    starved = waiting & ~(occupancy_ratio >= STARVED_BELOW_RATIO)
    return Flow(
        decode_utilization_ratio=float(occupancy_ratio[there].mean()) if there.any() else 0.0,
        starved_ratio=float(starved.mean()),
        waiting_ratio=float(waiting.mean()),
        lost_ratio=float(((1.0 - occupancy_ratio) * waiting)[there].mean()) if there.any() else 0.0,
    )


def flow_word(flow: Flow, *, endless_work: bool = False) -> FlowWord:
    """Name the flow.

    `saturated`: the pool is full and work still waits; `starved`: the pool often has free slots while work waits;
    `fed`: all else. With `endless_work` (the workload keeps turns waiting by construction) a full pool is `fed`,
    for there the queue at the door says nothing.
    """
    if flow.decode_utilization_ratio >= SATURATED_RATIO and flow.waiting_ratio > 0.5 and not endless_work:
        return "saturated"
    return "starved" if flow.starved_ratio > STARVED_SHARE else "fed"


def added_p99_s(at_s: Floats, latency_s: Floats, period_s: float) -> float | None:
    """Return how much a cycle adds to the 99th percentile of a latency, seconds (None: under 200 turns).

    The mean latency of each eighth of a period is taken out, leaving the overall mean: what the percentile loses by
    that is what the swing had added.

    Parameters
    ----------
    at_s, latency_s : ndarray
        Instant and latency of each turn, shape (turns,); NaN latencies are left out.
    period_s : float
        The cycle's period.
    """
    known = np.isfinite(latency_s) & np.isfinite(at_s)
    at, latency = at_s[known], latency_s[known]
    if len(latency) < 200 or period_s <= 0:
        return None
    phase = np.floor((at - at.min()) / (period_s / 8)).astype(np.int64)
    # An eighth of a period in which no turn came has no mean, and none is asked for.
    number = np.maximum(np.bincount(phase), 1)
    means = np.bincount(phase, weights=latency) / number
    rest = latency - means[phase] + latency.mean()
    return float(max(np.quantile(latency, 0.99) - np.quantile(rest, 0.99), 0.0))


def cost_of(flow: Flow, added_s: float | None = None) -> Cost:
    """Return the cost of a run's swing: slots left idle while work waited, and the latency added."""
    return {"utilization_lost_ratio": flow.lost_ratio, "added_p99_s": added_s}


def worst(verdicts: Mapping[str, SignalVerdict]) -> SignalVerdict | None:
    """Return the verdict that a headline tells: the worst word; among equals the largest swing; None if there is none.

    A decode pool that oscillates speaks for the run, for its swing is what costs. A chatter of the actuator alone, at
    no cost, does not; it keeps its own verdict.
    """
    if not verdicts:
        return None
    pool = verdicts.get(HEADLINE)
    if pool is not None and pool.oscillates:
        return pool
    order = {word: place for place, word in enumerate(SEVERITY)}
    return min(
        _speaking(verdicts),
        key=lambda verdict: (order[verdict.verdict], verdict.signal != HEADLINE, -verdict.amplitude_ratio),
    )


def _speaking(verdicts: Mapping[str, SignalVerdict]) -> list[SignalVerdict]:
    # A signal that was judged only because somebody asked for it does not change the headline.
    always = {row.name for row in JUDGED}
    usual = {name: verdict for name, verdict in verdicts.items() if name in always or _is_actuators(name)}
    verdicts = usual or verdicts
    factory = [verdict for name, verdict in verdicts.items() if not _is_actuators(name)]
    moved = any(verdict.oscillates or verdict.verdict in ("unbounded", "stalled") for verdict in factory)
    lost = max((verdict.cost["utilization_lost_ratio"] or 0.0 for verdict in factory), default=0.0)
    return list(verdicts.values()) if not factory or moved or lost >= COST_THAT_MATTERS_RATIO else factory


def _is_actuators(name: str) -> bool:
    return name in ACTUATOR_RATES or name.startswith(f"{COMMAND}.")


def headline(verdicts: Mapping[str, SignalVerdict], word: FlowWord) -> str:
    """Join a run's verdicts to its flow word, as in "limit cycle, period 33.4 s, cost 21 %, starved" or "steady, fed".

    Signals that are constant do not speak unless all are; a steady pool that loses slots still tells the cost.
    """
    loudest = worst(verdicts)
    if loudest is None:
        return f"undecided, {word}"
    parts = [loudest.verdict.replace("_", " ")]
    if loudest.verdict in ("unbounded", "stalled"):
        parts[0] = f"{loudest.verdict} {loudest.signal}"
    if loudest.period_s is not None and loudest.oscillates | (loudest.verdict == "driven"):
        parts.append(f"period {loudest.period_s:.3g} s")
    lost = loudest.cost["utilization_lost_ratio"]
    if lost is not None and (loudest.oscillates or word == "starved"):
        parts.append(f"cost {100 * lost:.0f} %")
    return ", ".join([*parts, word])
