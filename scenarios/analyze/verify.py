"""Compare a prediction with runs: the same numbers, measured, and whether they agree within their tolerances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, mode
from typing import Any

from scenarios.analyze import tolerance
from scenarios.analyze.prediction import Prediction
from scenarios.run.many import Job, run_many
from scenarios.schema.scenario import Scenario

# An identified plant is one lag, and a real pool's residence changes with its load: the period is held to this share.
IDENTIFIED_PERIOD_RATIO, IDENTIFIED_SWING_RATIO = 0.1, 0.15
QUIET = frozenset({"steady", "constant"})
# Within this share of the Hopf gain noise and clipping meet, and a run may fall on either side of the edge.
EDGE = 0.05
KEPT_UP = frozenset({"quasi_cycle", "limit_cycle"})


def measure(
    scenario: Scenario,
    signals: Mapping[str, str],
    seeds: int,
    jobs: int,
    done: Callable[[int, int], None] | None = None,
) -> dict[str, dict[str, object]]:
    """Run candidates on `seeds` seeds and return, for each, the mean of what was measured of the signal named.

    `plant` is the plant that the runs themselves showed (None: they showed none).
    """
    names = list(signals)
    work = [
        Job(key=(name, k), scenario=scenario, candidate=name, seed=scenario.seed + k)
        for name in names
        for k in range(seeds)
    ]
    summaries: dict[str, list[Mapping[str, Any]]] = {name: [] for name in names}
    for count, (key, summary) in enumerate(run_many(work, jobs), 1):
        assert isinstance(key, tuple)
        summaries[key[0]].append(summary)
        if done is not None:
            done(count, len(work))
    return {name: _mean_of_runs(runs, signals[name]) for name, runs in summaries.items()}


def _mean_of_runs(summaries: Sequence[Mapping[str, Any]], signal: str) -> dict[str, object]:
    verdicts = [summary["verdict"][signal] for summary in summaries]

    def mean(name: str) -> float | None:
        values = [float(verdict[name]) for verdict in verdicts if verdict.get(name) is not None]
        return fmean(values) if len(values) == len(verdicts) else None

    return {
        "verdict": mode(verdict["verdict"] for verdict in verdicts),
        "period_s": mean("period_s"),
        "amplitude_ratio": mean("amplitude_ratio"),
        "damping_ratio": mean("damping_ratio"),
        "utilization_ratio": fmean(float(s["flow"]["decode_utilization_ratio"]) for s in summaries),
        "seeds": len(summaries),
        "plant": _mean_plant([s.get("measured") for s in summaries]),
    }


def _mean_plant(estimates: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    known = [plant for plant in estimates if plant]
    if len(known) < len(estimates):
        return None
    return {name: _mean([plant[name] for plant in known]) for name in known[0]}


def _mean(values: Sequence[Any]) -> float | list[float]:  # numbers, or lists of equal length
    if isinstance(values[0], Sequence):
        return [fmean(at) for at in zip(*values, strict=True)]
    return fmean(values)


def disagreements(
    predicted: Prediction,
    measured: Mapping[str, Any],
    declared: bool = True,
    *,
    bin_s: float = 0.0,
    tick_s: float = 0.0,
) -> list[str]:
    """Return what differs beyond tolerance, in words; empty when prediction and measurement agree.

    `declared` False is an identified plant, whose period is held to a tenth. Only what was predicted is compared;
    `steady` and `constant` are the same prediction. `bin_s`, `tick_s`: the record's bin and the law's period, which
    blunt the swing of a cycle.
    """
    differences = []
    seeds = int(measured.get("seeds") or 1)
    want, got = predicted.verdict, measured["verdict"]
    at_edge = abs((predicted.facts.get("gain_over_hopf") or 0.0) - 1) < EDGE and {want, got} <= KEPT_UP
    same = got == want or {want, got} <= QUIET or at_edge
    if want is not None and not same and got not in predicted.also:
        alternatives = "".join(f" or {word}" for word in sorted(predicted.also))
        differences.append(f"verdict {want}{alternatives} was expected, {got} was measured")
    swings = want not in QUIET and not (got in QUIET and got in predicted.also)
    if predicted.period_s is not None and swings:
        limit = tolerance.limit(predicted.period_bias_ratio, predicted.period_se_ratio, seeds)
        limit = limit if declared else max(limit, IDENTIFIED_PERIOD_RATIO)
        differences += _beyond("period_s", predicted.period_s, measured["period_s"], limit * predicted.period_s)
    if predicted.damping_ratio is not None and predicted.damping_ratio > 0 and swings:
        limit = tolerance.limit(predicted.damping_bias_ratio, predicted.damping_se_ratio, seeds)
        limit *= predicted.damping_ratio
        differences += _beyond("damping_ratio", predicted.damping_ratio, measured["damping_ratio"], limit)
    if predicted.amplitude_ratio is not None and swings:
        limit, short = predicted.amplitude_tolerance_ratio, 0.0
        if predicted.period_s is not None and want != "quasi_cycle":
            limit += tolerance.ticked(predicted.amplitude_ratio, predicted.period_s, tick_s)
            short = tolerance.blunted(predicted.amplitude_ratio, predicted.period_s, bin_s)
        limit = limit if declared else max(limit, IDENTIFIED_SWING_RATIO * predicted.amplitude_ratio)
        differences += _beyond(
            "amplitude_ratio", predicted.amplitude_ratio, measured.get("amplitude_ratio"), limit, short
        )
    if predicted.utilization_ratio is not None:
        limit = tolerance.limit(predicted.utilization_tolerance_ratio, predicted.utilization_se_ratio, seeds)
        differences += _beyond("utilization_ratio", predicted.utilization_ratio, measured["utilization_ratio"], limit)
    return differences


def _beyond(name: str, want: float, got: float | None, limit: float, short: float = 0.0) -> list[str]:
    """Return the difference in words where `got` lies more than `limit` above, or `limit` and `short` below `want`."""
    if got is None:
        return [f"{name} {want:.4g} was expected, none was measured"]
    if -limit - short <= got - want <= limit:
        return []
    below = f" (or {short:.2g} less)" if short else ""
    return [f"{name} {want:.4g} +- {limit:.2g}{below} was expected, {got:.4g} was measured"]
