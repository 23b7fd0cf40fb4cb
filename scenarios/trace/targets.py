"""Compare the figures of a generated corpus with the published figures of its preset.

Sources: WEKA v8 (710 conversations) for the agents; the Azure conversation set of 2023 (Patel et al., ISCA 2024) for
the chat's answers; the Mooncake conversation set (Qin et al., FAST 2025) for the documents' lengths. Figures without
a published counterpart are not listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenarios.workloads.generate import simple, tables
from scenarios.workloads.generate.tables import PROBABILITIES, Table

AGENT: dict[str, tuple[Table, float]] = {
    "requests_per_conversation": (tables.REQUESTS, 69.5),
    "prompt_tokens": (tables.PROMPT_TOKENS, 122_379),
    "new_tokens": (tables.NEW_TOKENS, 4_509),
    "output_tokens": (tables.OUTPUT_TOKENS, 440),
    "first_prompt_tokens": (tables.FIRST_PROMPT_TOKENS, 91_238),
    "think_after_tool_s": (tables.THINK_AFTER_TOOL_S, 48.6),
    "think_after_answer_s": (tables.THINK_AFTER_ANSWER_S, 1_918),
}
AGENT_RATIOS = {
    ("hit", "token_ratio"): 0.963,
    ("new_tokens", "first_ratio"): 0.295,
    ("new_tokens", "breaks_ratio"): 0.33,
    ("new_tokens", "growth_ratio"): 0.38,
}
AGENT_SPREADS = {
    "duration_s": ((167.0, 1_345.0, 3_598.0, 7_355.0, 53_074.0, 94_903.0), 10_449.0),
    "unique_tokens": ((50_797.0, 124_896.0, 208_768.0, 371_216.0, 1_002_150.0, 1_368_764.0), 311_072.0),
}
AGENT_BREAKS = {"rewrite": 331, "compaction": 199, "shrink": 133, "rewind": 131, "break": 102, "stalactite": 6}
"""Requests that keep less than nine tenths of the blocks before them, in 710 conversations."""
AGENT_LARGE_DROPS, AGENT_SESSIONS = 192, 710
STATISTICS = tuple(f"p{round(100 * p)}" for p in PROBABILITIES)
OTHERS: dict[str, dict[str, Table]] = {
    "chat": {"output_tokens": simple.CHAT_OUTPUT_TOKENS},
    "rag": {"prompt_tokens": simple.RAG_PROMPT_TOKENS, "output_tokens": simple.RAG_OUTPUT_TOKENS},
    "batch": {"prompt_tokens": simple.BATCH_PROMPT_TOKENS, "output_tokens": simple.BATCH_OUTPUT_TOKENS},
}


def beside(preset: str, figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rows {figure, statistic, target, got} for a preset from an inspection's figures."""
    rows = []
    agent = preset.startswith("agentx")
    tables_by_figure = {n: t for n, (t, _) in AGENT.items()} if agent else OTHERS.get(preset, {})
    for name, table in tables_by_figure.items():
        got = figures["quantiles"].get(name, {})
        for p, target in zip(PROBABILITIES, table.quantiles, strict=True):
            statistic = f"p{round(100 * p)}"
            rows.append({"figure": name, "statistic": statistic, "target": target, "got": got.get(statistic)})
        if agent:
            rows.append({"figure": name, "statistic": "mean", "target": AGENT[name][1], "got": got.get("mean")})
    if agent:
        for name, (quantiles, mean) in AGENT_SPREADS.items():
            got = figures["quantiles"].get(name, {})
            for statistic, target in [*zip(STATISTICS, quantiles, strict=True), ("mean", mean)]:
                rows.append({"figure": name, "statistic": statistic, "target": target, "got": got.get(statistic)})
        rows.extend(_breaks(figures))
        for (part, name), target in AGENT_RATIOS.items():
            rows.append({"figure": name, "statistic": part, "target": target, "got": figures[part][name]})
    return rows


def _breaks(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return how many prefixes break in each way, and how many contexts drop by much, per 100 conversations."""
    new, share = figures["new_tokens"], 100 / max(1, figures["conversations"])
    counted = {name: new["breaks"].get(name, {}).get("events", 0) for name in AGENT_BREAKS}
    pairs = [(f"{name}_breaks", published, counted[name]) for name, published in AGENT_BREAKS.items()]
    pairs.append(("large_drops", AGENT_LARGE_DROPS, new["large_drops"]))
    return [
        {"figure": n, "statistic": "per 100", "target": 100 * p / AGENT_SESSIONS, "got": got * share}
        for n, p, got in pairs
    ]
