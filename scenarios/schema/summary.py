"""The keys of a run's summary as dotted paths, so that an expectation which no run can meet is found at load.

A key in angle brackets stands for a name: a signal, a service class, a configuration, a tier, a part of a mixture. A
test holds this list to the summaries of runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

# The signals that are judged; of the laws' commands, those that this candidate gives.
SIGNALS = (
    *("decode_occupancy_ratio", "ready_turns", "backlog_turns", "in_flight_turns", "workers_active"),
    *("admission_per_s", "retirement_per_s", "command.<command>"),
)
_COUNTS = ("arrived", "retired", "rejected", "failed", "preempted", "in_flight", "waiting")
_OF_TURNS = (
    *(f"counts.{name}" for name in _COUNTS),
    *("goodput.ratio", "goodput.turns_per_s"),
    *(f"latency.{name}.{rank}" for name in ("ttft_s", "ttft_from_release_s", "tpot_s", "e2e_s")
      for rank in ("p50", "p90", "p99")),
)  # fmt: skip
_OF_TRACES = ("conversations", "requests", "hit_token_ratio")
_STRANDED = ("compute_ratio", "bandwidth_ratio")
NUMBERS = (
    *(f"verdict.<signal>.{name}" for name in
      ("period_s", "amplitude_ratio", "damping_ratio", "p_value", "regularity", "envelope_cv", "periods",
       "cost.utilization_lost_ratio", "cost.added_p99_s")),
    *(f"flow.{name}" for name in
      ("decode_utilization_ratio", "starved_ratio", "backlogged_ratio", "ready_turns", "backlog_turns",
       "in_flight_turns", "arrival_per_s", "admission_per_s", "retirement_per_s")),
    *_OF_TURNS,
    *(f"by_class.<class>.{name}" for name in (*_OF_TURNS, "objectives.ttft_s", "objectives.tpot_s")),
    *(f"reconfigurations.{name}" for name in
      ("count", "flaps", "reversals", "refused", "rolled_back", "drain_s", "dead_s", "moved_turns", "refilled_turns")),
    *(f"kv.{name}" for name in
      ("hit_token_ratio", "prompt_tokens", "rebuilt_tokens", "demotions", "promotions", "rerouted", "contexts",
       "staging_depth.mean", "staging_depth.max", "hbm_idle_byte_s")),
    *(f"kv.{name}.<name>" for name in
      ("hit_tokens", "evictions", "evicted_tokens", "evicted_bytes", "moved_bytes", "link_bytes", "used_bytes",
       "capacity_bytes")),
    *(f"pools.{name}" for name in ("period_s", "fill_swing_ratio", "decode_swing_ratio", "behind_deg")),
    *(f"measured.{name}" for name in
      ("slots", "dead_time_s", "residence_s", "dead_time_ratio", "arrival_per_s", "backlogged_ratio")),
    *(f"stranded.{name}" for name in (*_STRANDED, "decode_ratio", "fill_ratio")),
    *(f"stranded.by_pool.<pool>.{name}" for name in _STRANDED),
    *(f"theory.{name}" for name in ("period_s", "decode_utilization_ratio", "loss_ratio")),
    *(f"trace.{name}" for name in _OF_TRACES),
    *(f"trace.parts.<name>.{name}" for name in _OF_TRACES),
    *("cpu_s_by_part.span", "cpu_s_by_part.verdict"),
    *("gpu_hours", "turns_per_cpu_s", "peak_rss_mb", "seed"),
)  # fmt: skip
_TRACE_WORDS = ("name", "format", "digest")
WORDS = (
    *("verdict.<signal>.verdict", "verdict.<signal>.reason", "flow.fed", "headline", "ended", "candidate", "scenario"),
    *(f"theory.{name}" for name in ("verdict", "signal", "mechanism")),
    *(f"trace.{name}" for name in _TRACE_WORDS),
    *(f"trace.parts.<name>.{name}" for name in _TRACE_WORDS),
)
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
