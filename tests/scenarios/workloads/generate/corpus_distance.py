"""Distance between two corpora: each marginal by its two-sample distance, and statistics of consecutive turns.

    KS = sup |F_a(x) - F_b(x)|           two-sample Kolmogorov-Smirnov distance of a marginal, 0 to 1

The structure statistics are the same for both corpora: rank correlations of neighbours and of columns within streams,
the share of turns that break their prefix, and of turns that a person starts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp, spearmanr

from scenarios.trace.labels import BREAKS, label
from scenarios.workloads import derive
from scenarios.workloads.corpus import STOPS, Corpus

Array = NDArray[np.float64]
END_TURN = STOPS.index("end_turn")
LEAST_TURNS = 3
"""Streams shorter than this have no neighbours to compare."""


@dataclass(frozen=True, slots=True)
class Distances:
    """KS distances by marginal, and (a, b) of each structural statistic."""

    ks: dict[str, float]
    structure: dict[str, tuple[float, float]]


def distances(a: Corpus, b: Corpus) -> Distances:
    """Compare two corpora of conversations.

    Parameters
    ----------
    a, b : Corpus
        Neither is changed.
    """
    left, right = _columns(a), _columns(b)
    ks = {
        name: float(ks_2samp(left.marginals[name], right.marginals[name], method="asymp").statistic)
        for name in left.marginals
        if len(left.marginals[name]) and len(right.marginals[name])
    }
    return Distances(ks, {name: (left.structure[name], right.structure[name]) for name in left.structure})


@dataclass(slots=True)
class _Columns:
    marginals: dict[str, Array]
    structure: dict[str, float]


def _columns(corpus: Corpus) -> _Columns:
    names = ("prompt_tokens", "new_tokens", "output_tokens", "think_s", "service_s", "growth_tokens")
    gathered: dict[str, list[Array]] = {name: [] for name in names}
    pairs: dict[str, list[tuple[Array, Array]]] = {}
    first, sizes, breaks, humans, turns = [], [], 0, 0, 0
    for conversation, cached in derive.with_cached_tokens(corpus):
        root, hit = conversation.streams[0], cached[0]
        new = (root.prompt_tokens - hit).astype(np.float64)
        prompt, output = root.prompt_tokens.astype(np.float64), root.output_tokens.astype(np.float64)
        first.append(prompt[0])
        sizes.append(float(conversation.requests))
        for name, values in zip(names, (prompt, new, output, root.think_s[1:], root.service_s, np.diff(prompt))):
            gathered[name].append(values)
        breaks += sum(name in BREAKS for name in label(root))
        humans += int((root.stop[:-1] == END_TURN).sum())
        turns += max(0, len(root) - 1)
        if len(root) >= LEAST_TURNS:
            later = slice(2, None)
            _add(pairs, "new tokens, neighbours", new[1:-1], new[later])
            _add(pairs, "answers, neighbours", output[:-1], output[1:])
            _add(pairs, "waits, neighbours", root.think_s[1:-1], root.think_s[later])
            _add(pairs, "wait before and new tokens", root.think_s[1:], new[1:])
            _add(pairs, "answer before and new tokens", output[:-1], new[1:])
            _add(pairs, "place in the session and prompt", np.arange(len(root), dtype=np.float64), prompt)
    marginals = {name: _finite_values(np.concatenate(parts)) for name, parts in gathered.items()}
    marginals["first_prompt_tokens"] = np.array(first)
    marginals["requests_per_conversation"] = np.array(sizes)
    structure = {name: _rank_correlation(parts) for name, parts in pairs.items()}
    structure["turns that break the prefix"] = breaks / max(1, turns)
    structure["turns after an answer that ended"] = humans / max(1, turns)
    structure["first prompt and requests"] = _rank_correlation([(np.array(first), np.array(sizes))])
    return _Columns(marginals, structure)


def _add(pairs: dict[str, list[tuple[Array, Array]]], name: str, x: Array, y: Array) -> None:
    pairs.setdefault(name, []).append((x, y))


def _finite_values(values: Array) -> Array:
    return values[~np.isnan(values)]


def _rank_correlation(parts: list[tuple[Array, Array]]) -> float:
    """Return Spearman's rank correlation over all pairs whose both values exist."""
    x = np.concatenate([part[0] for part in parts])
    y = np.concatenate([part[1] for part in parts])
    both = ~(np.isnan(x) | np.isnan(y))
    return float(spearmanr(x[both], y[both]).statistic)
