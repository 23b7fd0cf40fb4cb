"""Judge a whole run: the signals of its record that the catalogue marks, the commands, and what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from orchestrator.catalogue import COMMAND, HEADLINE, Kind, Scale, Signal, level_columns
from scenarios.catalogue.signals import JUDGED, RATES, row_of
from scenarios.catalogue.verdict import Cost, SignalVerdict
from scenarios.verdict.classify import judge_signal
from scenarios.verdict.flow import added_p99_s, cost_of, flow_of
from scenarios.verdict.thresholds import THRESHOLDS, Thresholds
from scenarios.verdict.types import Floats, Series

# Turns that are stuck: this stock stands above zero with nothing retired for a tenth of the window and for several of
# the longest waits between retirements before it.
STOCK, STALLED_SHARE, STALLED_WAITS, STALLED_BINS = "in_flight_turns", 0.1, 5.0, 10


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
    asked: Iterable[str] = (),
    limits: Thresholds = THRESHOLDS,
) -> dict[str, SignalVerdict]:
    """Judge the signals of a run's record, each against its scale.

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
        Name -> column (or a rate) of what comes from outside the loop. Arrivals of a saturated or a
        closed workload answer to the loop itself and do not belong here.
    latencies : (ndarray, ndarray), optional
        Instants and latencies of turns in the window, seconds, for the added 99th percentile.
    asked : iterable of str
        More signals to judge, such as `pool.decode.busy_slots`; one that the record lacks is left out.
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
    cost = _cost(record, step_s)
    verdicts = {}
    scales = _scales(slots, service_per_s, rates)
    turns = max((float(flow.sum()) * step_s for flow in rates.values()), default=None)
    for series in _all_series(record, step_s, scales, slots, asked):
        series = replace(series, turns=turns)
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
    since_s = stalled_since(signals, warmup_s, horizon_s, transit_s)
    if STOCK in verdicts and since_s is not None:
        verdicts[STOCK] = _stalled(verdicts[STOCK], since_s, horizon_s)
    return verdicts


def _cost(record: pd.DataFrame, step_s: float) -> Cost | None:
    if not {f"{HEADLINE}_mean", "backlog_turns_min"} <= set(record):
        return None
    return cost_of(flow_of(column(record, HEADLINE, step_s), column(record, "backlog_turns_min", step_s)))


def _stalled(still: SignalVerdict, since_s: float, horizon_s: float) -> SignalVerdict:
    reason = f"nothing retired from {since_s:.4g} s to {horizon_s:.4g} s while turns were in flight"
    return SignalVerdict(
        signal=still.signal, verdict="stalled", reason=reason, amplitude_ratio=still.amplitude_ratio, cost=still.cost
    )


def stalled_since(signals: pd.DataFrame, warmup_s: float, horizon_s: float, transit_s: float | None) -> float | None:
    """Return the end of the last bin with a retirement, if turns in flight have been stuck ever since; else None.

    Parameters
    ----------
    signals : DataFrame
        The whole record, warm-up included.
    warmup_s, horizon_s : float
        The judged window.
    transit_s : float or None
        Mean time from release to retirement, seconds.
    """
    if not {"retired_turns", f"{STOCK}_min"} <= set(signals):
        return None
    step_s = bin_width_s(signals)
    record = window_of(signals, 0.0, horizon_s)
    retired = np.flatnonzero(record["retired_turns"].to_numpy(dtype=np.float64) > 0)
    t = record["t_s"].to_numpy(dtype=np.float64)
    if len(retired) < STALLED_BINS:
        return None
    last_s = float(t[retired[-1]]) + step_s
    gaps_s = np.diff(t[retired])
    # As long as several of the longest waits that were seen, and as several trips round the loop.
    least_s = max(STALLED_SHARE * (horizon_s - warmup_s), STALLED_WAITS * max(float(gaps_s.max()), transit_s or 0.0))
    stuck = record[f"{STOCK}_min"].to_numpy(dtype=np.float64)[retired[-1] + 1 :]
    return last_s if horizon_s - last_s >= least_s and len(stuck) > 0 and bool(np.all(stuck > 0)) else None


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


def _scales(slots: float, service_per_s: float | None, rates: Mapping[str, Floats]) -> dict[Scale, float]:
    if service_per_s is None:
        ended = rates.get("retirement_per_s", np.zeros(0))
        service_per_s = float(np.quantile(ended, 0.9)) if len(ended) else 1.0
    return {Scale.ONE: 1.0, Scale.SLOTS: slots, Scale.SERVICE: max(service_per_s, 1e-9)}


def _all_series(
    record: pd.DataFrame, step_s: float, scales: Mapping[Scale, float], slots: float, asked: Iterable[str]
) -> Iterator[Series]:
    """Yield what is judged: the marked signals, the commands of the record, and what was asked for beside them."""
    commands = [str(name) for name in record.columns if str(name).startswith(f"{COMMAND}.")]
    for name in dict.fromkeys((*(row.name for row in JUDGED), *commands, *asked)):
        row = row_of(name)
        series = None if row is None else _series(record, step_s, name, row, scales, slots)
        if series is not None:
            yield series


def _series(
    record: pd.DataFrame, step_s: float, name: str, row: Signal, scales: Mapping[Scale, float], slots: float
) -> Series | None:
    """Return a signal of the record as the verdict takes it; None: the record does not hold it."""
    if row.kind is Kind.COUNT:
        if row.column not in record:
            return None
        x = column(record, name, step_s)
        return Series(name=name, step_s=step_s, mean=x, scale=scales[row.scale], one_turn=1 / step_s, flow=True)
    if row.kind is Kind.LATEST:
        if name not in record or not len(record) or not pd.api.types.is_numeric_dtype(record[name]):
            return None
        x = _filled(record[name])
        actuator = name.startswith(f"{COMMAND}.capacity.")
        return Series(name=name, step_s=step_s, mean=x, scale=_scale(row.scale, x, scales), actuator=actuator)
    columns = level_columns(name)
    if columns[0] not in record:
        return None
    mean, low, high = (_filled(record[column]) for column in columns)
    scale = _scale(row.scale, mean, scales)
    return Series(
        name=name,
        step_s=step_s,
        mean=mean,
        minimum=low,
        maximum=high,
        scale=scale if row.scale is Scale.ONE else max(scale, 1.0),
        stock=row.unit != "ratio",
        one_turn=1 / slots if row.per_slot else 1.0 if row.unit == "turns" else None,
        actuator=name == "workers_active",
    )


def _scale(of: Scale, x: Floats, scales: Mapping[Scale, float]) -> float:
    if of is Scale.MEAN:
        return max(float(np.abs(x).mean()) if len(x) else 1.0, 1.0)
    return scales[of]


def _filled(values: pd.Series[float]) -> Floats:
    # Not yet commanded (NaN) reads as the first command, later gaps as the last; "at once" (inf) as the largest rate.
    x = np.asarray(values.to_numpy(dtype=np.float64)).copy()
    finite = x[np.isfinite(x)]
    if len(finite) == 0:
        return np.zeros(len(x))
    x[np.isposinf(x)] = finite.max()
    return np.asarray(pd.Series(x).ffill().bfill().to_numpy(dtype=np.float64))
