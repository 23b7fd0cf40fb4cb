"""Judge a whole run: the standard signals and the commands of its record, each with its scale, and the run's cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from scenarios.verdict.classify import judge_signal
from scenarios.verdict.flow import added_p99_s, cost_of, flow_of
from scenarios.verdict.thresholds import THRESHOLDS, Thresholds
from scenarios.verdict.types import Floats, Series, SignalVerdict

LEVELS = ("decode_occupancy_ratio", "ready_turns", "backlog_turns", "in_flight_turns", "workers_active")
RATES = {
    "arrival_per_s": "arrived_turns",
    "admission_per_s": "admitted_turns",
    "retirement_per_s": "retired_turns",
}
JUDGED_RATES = ("admission_per_s", "retirement_per_s")


def judge_run(
    signals: pd.DataFrame,
    *,
    slots: float,
    service_per_s: float | None,
    warmup_s: float,
    horizon_s: float,
    transit_s: float | None = None,
    inputs: Mapping[str, str] | None = None,
    latencies: tuple[Floats, Floats] | None = None,
    limits: Thresholds = THRESHOLDS,
) -> dict[str, SignalVerdict]:
    """Judge the standard signals and the commands of a run's record.

    Parameters
    ----------
    signals : DataFrame
        The record, one row a bin: `t_s` (start of the bin), `<signal>_mean|_min|_max`, counts, `command.*` columns.
    slots : float
        N, the decode slots of the pool; the scale of turn counts.
    service_per_s : float or None
        N/T, what a full pool retires; the scale of rates. None: the highest tenth of the retirement rate stands in.
    warmup_s, horizon_s : float
        The window is [warmup_s, horizon_s).
    transit_s : float, optional
        Mean time from release to retirement, seconds, for naming echoes.
    inputs : mapping of str to str, optional
        Name -> column (or one of the three rates) of what comes from outside the loop. Arrivals of a saturated or a
        closed workload answer to the loop itself and do not belong here.
    latencies : (ndarray, ndarray), optional
        Instants and latencies of turns in the window, seconds, for the added 99th percentile.
    limits : Thresholds
        Where the words part.

    Returns
    -------
    dict of str to SignalVerdict
        By signal, in the record's order; signals that the record lacks are left out.
    """
    record = window_of(signals, warmup_s, horizon_s)
    step_s = bin_width_s(signals)
    rates = {name: column(record, name, step_s) for name in RATES if RATES[name] in record}
    outside = {name: column(record, source, step_s) for name, source in (inputs or {}).items()}
    cost = None
    if {"decode_occupancy_ratio_mean", "backlog_turns_min"} <= set(record):
        flow = flow_of(column(record, "decode_occupancy_ratio", step_s), column(record, "backlog_turns_min", step_s))
        cost = cost_of(flow)
    verdicts = {}
    for series in _series(record, step_s, slots, service_per_s, rates):
        verdict = judge_signal(
            series,
            inputs=outside,
            transit_s=transit_s,
            admissions=rates.get("admission_per_s"),
            retirements=rates.get("retirement_per_s"),
            cost=cost,
            limits=limits,
        )
        if latencies is not None and verdict.period_s is not None and verdict.oscillates and cost is not None:
            added = added_p99_s(*latencies, verdict.period_s)
            verdict = replace(verdict, cost={**verdict.cost, "added_p99_s": added})
        verdicts[series.name] = verdict
    return verdicts


def window_of(signals: pd.DataFrame, warmup_s: float, horizon_s: float) -> pd.DataFrame:
    """Return the whole bins within [warmup_s, horizon_s)."""
    start = signals["t_s"].to_numpy(dtype=np.float64)
    width = bin_width_s(signals)
    slack = 1e-6 * width
    return signals[(start >= warmup_s - slack) & (start + width <= horizon_s + slack)]


def bin_width_s(signals: pd.DataFrame) -> float:
    """Return the width of a bin, seconds (1.0 for a record of fewer than two bins)."""
    start = signals["t_s"].to_numpy(dtype=np.float64)
    return float(start[1] - start[0]) if len(start) > 1 else 1.0


def column(record: pd.DataFrame, name: str, step_s: float) -> Floats:
    """Return a signal by its name: a rate from its counts, a level from its bin means, or a plain column."""
    if name in RATES:
        return np.asarray(record[RATES[name]].to_numpy(dtype=np.float64)) / step_s
    for candidate in (f"{name}_mean", name):
        if candidate in record:
            return np.asarray(record[candidate].to_numpy(dtype=np.float64))
    raise KeyError(f"the record holds no signal {name}")


def _series(
    record: pd.DataFrame, step_s: float, slots: float, service_per_s: float | None, rates: Mapping[str, Floats]
) -> list[Series]:
    found = []
    for name in LEVELS:
        if f"{name}_mean" not in record:
            continue
        low, mean, high = (_filled(record[f"{name}_{part}"]) for part in ("min", "mean", "max"))
        ratio = name.endswith("_ratio")
        scale = 1.0 if ratio else max(float(mean.mean()) if name == "workers_active" and len(mean) else slots, 1.0)
        found.append(
            Series(
                name=name,
                step_s=step_s,
                mean=mean,
                minimum=low,
                maximum=high,
                scale=scale,
                stock=not ratio,
                one_turn=None if name == "workers_active" else 1 / slots if ratio else 1.0,
            )
        )
    full = service_per_s
    if full is None:
        ended = rates.get("retirement_per_s", np.zeros(0))
        full = float(np.quantile(ended, 0.9)) if len(ended) else 1.0
    full = max(full, 1e-9)
    found += [
        Series(name=name, step_s=step_s, mean=rates[name], scale=full, one_turn=1 / step_s, flow=True)
        for name in JUDGED_RATES
        if name in rates
    ]
    return found + _commands(record, step_s, slots, full)


def _commands(record: pd.DataFrame, step_s: float, slots: float, full_per_s: float) -> list[Series]:
    found = []
    for name in record.columns:
        if not name.startswith("command.") or not pd.api.types.is_numeric_dtype(record[name]):
            continue
        x = _filled(record[name])
        if len(x) == 0:
            continue
        field = name.split(".")[2]
        if field.endswith("_per_s"):
            scale = full_per_s
        elif field.endswith(("_open", "_ratio")):
            scale = 1.0
        elif field.endswith("_workers"):
            scale = max(float(np.abs(x).mean()), 1.0)
        else:
            scale = slots
        found.append(Series(name=name, step_s=step_s, mean=x, scale=scale))
    return found


def _filled(values: pd.Series[float]) -> Floats:
    # Not yet commanded (NaN) reads as the first command, later gaps as the last; "at once" (inf) as the largest rate.
    x = np.asarray(values.to_numpy(dtype=np.float64)).copy()
    finite = x[np.isfinite(x)]
    if len(finite) == 0:
        return np.zeros(len(x))
    x[np.isposinf(x)] = finite.max()
    return np.asarray(pd.Series(x).ffill().bfill().to_numpy(dtype=np.float64))
