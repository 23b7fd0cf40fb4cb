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
        for (part, name), target in AGENT_RATIOS.items():
            rows.append({"figure": name, "statistic": part, "target": target, "got": figures[part][name]})
    return rows
