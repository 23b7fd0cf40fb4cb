"""Measurement beside prediction: the same numbers from runs, and whether they agree within the stated tolerances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, mode
from typing import Any

from scenarios.analyze.predict import Prediction
from scenarios.run.many import Job, run_many
from scenarios.schema.scenario import Scenario

SIGNAL = "decode_occupancy_ratio"
# Shares of the prediction, save utilisation, which is absolute. A describing function is not held to these.
TOLERANCE = {"period_s": 0.03, "damping_ratio": 0.25, "utilization_ratio": 0.01}
# Small pools cycle less evenly, and thin bands are crossed by noise.
WIDE_PERIOD = 0.05
SMALL_SLOTS = 200
QUIET = frozenset({"steady", "constant"})


def measure(
    scenario: Scenario, names: Sequence[str], seeds: int, jobs: int, done: Callable[[int, int], None] | None = None
) -> dict[str, dict[str, object]]:
    """Run the candidates on `seeds` seeds and return, per candidate, the mean of what was measured."""
    work = [
        Job(key=(name, k), scenario=scenario, candidate=name, seed=scenario.seed + k)
        for name in names
        for k in range(seeds)
    ]
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    for count, (key, summary) in enumerate(run_many(work, jobs), 1):
        assert isinstance(key, tuple)
        found[key[0]].append(summary)
        if done is not None:
            done(count, len(work))
    return {name: _joined(own) for name, own in found.items()}


def _joined(summaries: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    own = [summary["verdict"][SIGNAL] for summary in summaries]

    def mean(name: str) -> float | None:
        values = [float(one[name]) for one in own if one.get(name) is not None]
        return fmean(values) if len(values) == len(own) else None

    return {
        "verdict": mode(one["verdict"] for one in own),
        "period_s": mean("period_s"),
        "amplitude_ratio": mean("amplitude_ratio"),
        "damping_ratio": mean("damping_ratio"),
        "utilization_ratio": fmean(float(s["flow"]["decode_utilization_ratio"]) for s in summaries),
        "seeds": len(summaries),
    }


def disagreements(predicted: Prediction, measured: Mapping[str, Any], slots: float) -> list[str]:
    """Return what differs beyond tolerance, in words; empty when prediction and measurement agree.

    Only what was predicted is compared; `steady` and `constant` are the same prediction.
    """
    found = []
    want, got = predicted.verdict, measured["verdict"]
    if want is not None and got != want and not {want, got} <= QUIET:
        found.append(f"verdict {want} was expected, {got} was measured")
    if predicted.period_s is not None and want not in QUIET:
        limit = WIDE_PERIOD if slots <= SMALL_SLOTS or want == "quasi_cycle" else TOLERANCE["period_s"]
        found += _beyond("period_s", predicted.period_s, measured["period_s"], limit * predicted.period_s)
    if predicted.damping_ratio is not None and predicted.damping_ratio > 0 and want not in QUIET:
        limit = TOLERANCE["damping_ratio"] * predicted.damping_ratio
        found += _beyond("damping_ratio", predicted.damping_ratio, measured["damping_ratio"], limit)
    if predicted.utilization_ratio is not None:
        limit = TOLERANCE["utilization_ratio"]
        found += _beyond("utilization_ratio", predicted.utilization_ratio, measured["utilization_ratio"], limit)
    return found


def _beyond(name: str, want: float, got: float | None, limit: float) -> list[str]:
    if got is None:
        return [f"{name} {want:.4g} was expected, none was measured"]
    return [f"{name} {want:.4g} +- {limit:.2g} was expected, {got:.4g} was measured"] if abs(got - want) > limit else []
