"""The keys of a run's summary as dotted paths, with what they mean: for expectations and for docs/record.md.

An expectation that no run can meet is refused when the scenario is loaded. A key in angle brackets stands for a name:
a signal, a service class, a pool, a tier, a part of a mixture. A test holds this list to the summaries of runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from scenarios.catalogue.signals import COUNTS, LEVELS
from scenarios.catalogue.verdict import COST_MEANINGS, NUMBER_PATHS, VERDICT_FIELDS


@dataclass(frozen=True, slots=True)
class Key:
    """One number or word of a summary: its path, what it means, and when it is None or missing."""

    path: str
    meaning: str
    empty: str = "never"


def _keys(before: str, empty: str, **meanings: str) -> tuple[Key, ...]:
    return tuple(Key(f"{before}{name}", meaning, empty) for name, meaning in meanings.items())


def _below(before: str, keys: Iterable[Key]) -> tuple[Key, ...]:
    return tuple(Key(f"{before}{key.path}", key.meaning, key.empty) for key in keys)


_RANKS = {"p50": "median", "p90": "90th percentile", "p99": "99th percentile"}
_LATENCIES = {
    "ttft_s": "time to first token, from arrival",
    "ttft_from_release_s": "time to first token, from admission",
    "tpot_s": "time per output token after the first",
    "e2e_s": "time from arrival to the end of the answer",
}
_NO_TURN, _NO_POOLS, _NO_TIERS = "no such turn", "the plant is no cluster", "the plant keeps no tiers of KV state"
_OF_TURNS = (
    *_keys("counts.", "never",
           arrived="turns that arrived in the whole run",
           retired="turns that retired",
           rejected="turns that were refused",
           failed="turns that failed",
           preempted="preemptions",
           in_flight="turns that have arrived and not ended at the end of the run",
           waiting="the part of these that waits for admission"),
    *_keys("goodput.", "no objective, or no turn",
           ratio="retired turns that met every objective of their class over all that ended",
           turns_per_s="the same turns a second"),
    *(Key(f"latency.{name}.{rank}", f"{meaning}: {of}", _NO_TURN)
      for name, meaning in _LATENCIES.items() for rank, of in _RANKS.items()),
)  # fmt: skip
_OF_TRACES = _keys(
    "",
    "the workload plays no trace",
    conversations="conversations in the trace",
    requests="requests in it",
    hit_token_ratio="prompt tokens that an endless cache would find, over all",
)
_STRANDED = _keys(
    "",
    _NO_POOLS,
    compute_ratio="worker time in which no new token was computed, over all that was paid for",
    bandwidth_ratio="worker time in which no decode step ran, over all that was paid for",
)
_FLOW = {
    **{row.name: f"mean of: {row.meaning}" for row in LEVELS if row.unit == "turns"},
    **{row.name: f"{row.meaning}, as a rate" for row in COUNTS},
}
_VERDICT = tuple(Key(f"verdict.<signal>.{f.name}", f.metadata["meaning"], f.metadata["empty"]) for f in VERDICT_FIELDS)
NUMBER_KEYS = (
    *(key for key in _VERDICT if key.path.rsplit(".", 1)[1] in NUMBER_PATHS),
    *_keys("verdict.<signal>.cost.", "the record lacks occupancy or backlog", **COST_MEANINGS),
    *_keys("flow.", "the window holds no bin",
           decode_utilization_ratio="mean share of the decode slots in use",
           starved_ratio="share of the window with under 0.9 of the slots in use while turns wait for admission",
           backlogged_ratio="share of the window in which turns wait for admission",
           **_FLOW),
    *_OF_TURNS,
    *_below("by_class.<class>.", _OF_TURNS),
    *_keys("by_class.<class>.objectives.", "the class has no such objective",
           ttft_s="objective of the time to first token", tpot_s="objective of the time per output token"),
    *_keys("recovery.", "the scenario has no faults; or turns inside have not come down (recovery_s)",
           faults="faults in the run, each of those of a list by itself",
           last_s="end of the last fault; its begin, where it stays",
           usual_turns="most turns inside, waiting or in flight, before the first fault",
           worst_turns="most turns inside from the first fault on",
           recovery_s="time from there until turns inside are within 1.25 of the usual for good"),
    *_keys("reconfigurations.", "the plant has no turns",
           count="workers that changed their configuration",
           flaps="changes that were undone within the flap window",
           reversals="workers turned back on their way",
           refused="decisions of the capacity law that were refused",
           rolled_back="changes that failed and were undone",
           drain_s="worker time spent on draining",
           dead_s="worker time spent between two configurations",
           moved_turns="turns sent on with their KV state by a drained worker",
           refilled_turns="turns sent on without it, to be filled again"),
    *_keys("kv.", _NO_TIERS,
           hit_token_ratio="prompt tokens found in a tier over those of all fills",
           prompt_tokens="prompt tokens of all fills",
           rebuilt_tokens="tokens computed again that were kept once",
           demotions="contexts moved down a tier",
           promotions="contexts moved up a tier",
           rerouted="transfers led around a failed link",
           contexts="mean number of contexts kept",
           hbm_idle_byte_s="bytes of KV state in accelerator memory without work, times seconds"),
    *_keys("kv.staging_depth.", _NO_TIERS,
           mean="mean number of contexts staged in nodes", max="greatest number of contexts staged in nodes"),
    *_keys("kv.", "no such tier, link or reason",
           **{"hit_tokens.<name>": "prompt tokens found, by tier",
              "evictions.<name>": "contexts given up, by reason",
              "evicted_tokens.<name>": "tokens given up, by reason",
              "evicted_bytes.<name>": "bytes given up, by reason",
              "moved_bytes.<name>": "bytes moved, by kind of move",
              "link_bytes.<name>": "bytes carried, by link",
              "used_bytes.<name>": "mean bytes kept, by tier",
              "capacity_bytes.<name>": "most bytes kept, by tier"}),
    *_keys("pools.", "a stage never holds a turn, or (period, lag) turns in flight do not cycle",
           period_s="period at which turns in flight cycle",
           fill_swing_ratio="standard deviation of turns under fill over their mean",
           decode_swing_ratio="standard deviation of turns in a slot over their mean",
           behind_deg="how far decode trails fill at that period, degrees"),
    *_keys("measured.", "too few turns to tell",
           slots="mean number of decode slots",
           dead_time_s="mean time from admission to the ready buffer",
           residence_s="mean time in a slot",
           dead_time_ratio="dead time over residence",
           arrival_per_s="arrivals a second",
           backlogged_ratio="share of bins in which turns wait for admission throughout"),
    *_below("stranded.", _STRANDED),
    *_keys("stranded.", "no pool serves the stage by itself",
           decode_ratio="decode slots idle while turns wait for a fill worker, over all",
           fill_ratio="fill workers idle while filled turns wait for a slot, over all"),
    *_below("stranded.by_pool.<pool>.", _STRANDED),
    *_keys("theory.", "theory has no answer, or was not asked (`compare` asks)",
           period_s="predicted period",
           decode_utilization_ratio="predicted share of the slots in use",
           loss_ratio="predicted slot time lost"),
    *_below("trace.", _OF_TRACES),
    *_below("trace.parts.<name>.", _OF_TRACES),
    *_keys("cpu_s_by_part.", "never",
           span="processor time of the simulated span", verdict="processor time of the verdict"),
    *_keys("", "never",
           gpu_hours="GPU hours paid for",
           turns_per_cpu_s="turns retired for each second of processor time",
           peak_rss_mb="most memory of the process, MB",
           seed="seed of the run"),
)  # fmt: skip
_TRACE_WORDS = _keys(
    "", "the workload plays no trace", name="name of the trace", format="its format", digest="its SHA-256"
)
WORD_KEYS = (
    *(key for key in _VERDICT if key.path.endswith((".verdict", ".reason"))),
    Key("flow.fed", "`fed`, `starved` or `saturated`", "the window holds no bin"),
    *_keys("", "never",
           headline="the verdict of the run in a line",
           ended="why the run ended",
           candidate="name of the candidate",
           scenario="title of the scenario"),
    *_keys("theory.", "theory has no answer, or was not asked (`compare` asks)",
           verdict="predicted word", signal="signal that the prediction is about", mechanism="why, in a sentence"),
    *_below("trace.", _TRACE_WORDS),
    *_below("trace.parts.<name>.", _TRACE_WORDS),
)  # fmt: skip
NUMBERS = tuple(key.path for key in NUMBER_KEYS)
WORDS = tuple(key.path for key in WORD_KEYS)
Names = Mapping[str, Iterable[str]]


def among(path: str, patterns: Iterable[str], names: Names) -> bool:
    """Tell whether a path fits one of the patterns; a stand-in whose names are not given fits any."""
    return any(re.fullmatch(_expression(pattern, names), path) for pattern in patterns)


def _expression(pattern: str, names: Names) -> str:
    def piece(part: str) -> str:
        if not part.startswith("<"):
            return re.escape(part)
        known = names.get(part[1:-1])
        return ".+" if known is None else "(?:" + "|".join(_expression(name, names) for name in known) + ")"

    return "".join(piece(part) for part in re.split(r"(<\w+>)", pattern))


def spelled(patterns: Iterable[str], names: Names) -> Iterator[str]:
    """Yield every path that the patterns and the given names make; a stand-in without names stays."""
    for pattern in patterns:
        parts = re.split(r"(<\w+>)", pattern)
        for chosen in product(*(list(names.get(p[1:-1], [p])) if p.startswith("<") else [p] for p in parts)):
            yield "".join(chosen)
