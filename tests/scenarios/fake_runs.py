"""Small honest runs without the kernel: a pool of slots behind a dead time, fed by a relay or by a constant rate."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from scenarios.catalogue.verdict import SignalVerdict
from scenarios.pages.document import document
from scenarios.report.page import contents
from scenarios.run.metrics import Objective, summarize
from scenarios.run.record import RunData

DEAD_S, STAY_S, BIN_S, SUB = 10.0, 5.0, 0.25, 5
STAGES = ("filling", "ready", "decoding")


def fake_run(
    candidate: str = "retirement_gate",
    *,
    relay: bool = True,
    slots: int = 64,
    horizon_s: float = 300.0,
    warmup_s: float = 60.0,
    seed: int = 7,
    cluster: bool = False,
    theory: Mapping[str, Any] | None = None,
) -> RunData:
    """A relay on occupancy (a limit cycle of about 33 s), or a paced door at 0.99 of the pool's rate (steady)."""
    turns = _turns(relay, slots, horizon_s, np.random.default_rng(seed), cluster)
    signals = _signals(turns, slots, horizon_s, cluster)
    objectives = {"chat": Objective(ttft_s=30.0, tpot_s=0.1), "agent": Objective(ttft_s=60.0)}
    window_s = (warmup_s, horizon_s)
    summary = summarize(turns, signals, window_s=window_s, endless_work=True, objectives=objectives)
    verdicts = {
        name: _verdict(signals, name, column, relay, window_s)
        for name, column in (
            ("decode_occupancy_ratio", "decode_occupancy_ratio_mean"),
            ("ready_turns", "ready_turns_mean"),
            ("admission_per_s", "admitted_turns"),
            ("in_flight_turns", "in_flight_turns_mean"),
        )
    }
    first = verdicts["decode_occupancy_ratio"]
    words = f"limit cycle, period {first.period_s:.1f} s, cost 21 %" if relay else "steady"
    summary |= {"candidate": candidate, "scenario": "fake_reference", "seed": seed, "gpu_hours": None, "trace": None}
    summary["theory"] = dict(theory) if theory else None
    summary["headline"] = f"{words}, {summary['flow']['fed']}"
    return RunData(
        candidate=candidate,
        title="Full, then empty",
        question="Does a gate on decode occupancy oscillate behind a dead time of two residences?",
        signals=signals,
        turns=turns,
        events=[{"at_s": 0.0, "kind": "command", "slot": "admission", "gate_open": True}],
        verdicts=verdicts,
        summary=summary,
        meta={
            "seed": seed,
            "slots": slots,
            "ended": "horizon",
            "classes": {"chat": {"ttft_s": 30.0, "tpot_s": 0.1}, "agent": {"ttft_s": 60.0, "tpot_s": None}},
        },
        scenario_toml='title = "Full, then empty"\n',
    )


def _turns(relay: bool, slots: int, horizon_s: float, rng: np.random.Generator, cluster: bool) -> pd.DataFrame:
    rate = 2.0 * slots / STAY_S if relay else 0.99 * slots / STAY_S
    free = [0.0] * slots
    joins: list[float] = []
    ends: list[float] = []
    busy, opened, credit = 0, True, 0.0
    rows: list[tuple[float, float, float, float]] = []
    for now in np.arange(0.0, horizon_s, 0.05).tolist():
        while joins and joins[0] <= now:
            heapq.heappop(joins)
            busy += 1
        while ends and ends[0] <= now:
            heapq.heappop(ends)
            busy -= 1
        opened = not relay or (busy < slots if opened else busy <= 0.95 * slots)
        credit += rate * 0.05 if opened else 0.0
        while credit >= 1.0:
            credit -= 1.0
            filled = now + DEAD_S
            joined = max(filled, heapq.heappop(free))
            ended = joined + rng.exponential(STAY_S)
            heapq.heappush(free, ended)
            heapq.heappush(joins, joined)
            heapq.heappush(ends, ended)
            rows.append((now, filled, joined, ended))
    released, filled_s, joined_s, ended_s = (np.array(column) for column in zip(*rows))
    n = len(rows)
    arrived = np.maximum(0.0, released - 2.0)
    outcome = np.select(
        [ended_s <= horizon_s, joined_s <= horizon_s, filled_s <= horizon_s],
        ["retired", "decoding", "ready"],
        "filling",
    )
    cut = {
        "filled_s": np.where(filled_s <= horizon_s, filled_s, np.nan),
        "joined_s": np.where(joined_s <= horizon_s, joined_s, np.nan),
        "ended_s": np.where(ended_s <= horizon_s, ended_s, np.nan),
    }
    number = np.arange(n)
    return pd.DataFrame(
        {
            "turn_id": number,
            "key": number.astype(np.uint64),
            "session_id": number // 3,
            "ordinal": (number % 3).astype(np.int32),
            "class": np.where(number % 2, "chat", "agent"),
            "arrived_s": arrived,
            "released_s": released,
            "fill_started_s": released,
            **cut,
            "prompt_tokens": 1000 + number % 50,
            "cached_tokens": 0 * number,
            "output_tokens": np.where(outcome == "retired", 200, 0),
            "fill_worker": (number % 3 if cluster else 0 * number).astype(np.int32),
            "decode_worker": np.where(np.isnan(cut["joined_s"]), -1, 100 + number % 4 if cluster else 1).astype(
                np.int32
            ),
            "preemptions": np.zeros(n, dtype=np.int16),
            "outcome": outcome,
        }
    )


def _signals(turns: pd.DataFrame, slots: int, horizon_s: float, cluster: bool) -> pd.DataFrame:
    start = np.arange(0.0, horizon_s, BIN_S)
    at = (start[:, None] + (np.arange(SUB) + 0.5)[None, :] * BIN_S / SUB).ravel()

    def level(enter: str, leave: str) -> np.ndarray:
        into, out = (np.sort(turns[name].dropna().to_numpy()) for name in (enter, leave))
        return (np.searchsorted(into, at, "right") - np.searchsorted(out, at, "right")).reshape(len(start), SUB)

    levels = {
        "filling_turns": level("released_s", "filled_s"),
        "ready_turns": level("filled_s", "joined_s"),
        "decoding_turns": level("joined_s", "ended_s"),
        "backlog_turns": level("arrived_s", "released_s") + slots,
    }
    levels["in_flight_turns"] = levels["filling_turns"] + levels["ready_turns"] + levels["decoding_turns"]
    levels["decode_occupancy_ratio"] = levels["decoding_turns"] / slots
    if cluster:
        levels["pool.fill.busy_slots"] = levels["filling_turns"]
        levels["pool.decode.busy_slots"] = levels["decoding_turns"]
        levels["pool.decode.kv_used_ratio"] = 0.8 * levels["decode_occupancy_ratio"]
    levels["workers_active"] = np.ones_like(levels["ready_turns"])
    columns: dict[str, np.ndarray] = {"t_s": start}
    for name, values in levels.items():
        columns |= {f"{name}_mean": values.mean(1), f"{name}_min": values.min(1), f"{name}_max": values.max(1)}
    edges = np.append(start, horizon_s)
    for name, of in (("arrived", "arrived_s"), ("admitted", "released_s"), ("retired", "ended_s")):
        columns[f"{name}_turns"] = np.histogram(turns[of].dropna(), edges)[0].astype(float)
    columns["command.admission.release_per_s"] = columns["admitted_turns"] / BIN_S
    columns["seen.admission.busy_slots"] = np.append(np.nan, levels["decoding_turns"][:-1, -1])
    return pd.DataFrame(columns).astype(float)


def _verdict(
    signals: pd.DataFrame, name: str, column: str, relay: bool, window_s: tuple[float, float]
) -> SignalVerdict:
    y = signals.loc[signals["t_s"] >= window_s[0], column].to_numpy(dtype=float)
    y = y - y.mean()
    acf = np.correlate(y, y, "full")[len(y) - 1 :][: int(100 / BIN_S)]
    acf = acf / acf[0] if acf[0] else acf
    low = int(20 / BIN_S)
    period = (low + int(np.argmax(acf[low : int(45 / BIN_S)]))) * BIN_S
    spectrum = np.abs(np.fft.rfft(y)) ** 2 / len(y)
    return SignalVerdict(
        signal=name,
        verdict="limit_cycle" if relay else "steady",
        period_s=period if relay else None,
        amplitude_ratio=0.43 if relay else 0.01,
        damping_ratio=0.0 if relay else None,
        p_value=0.001 if relay else 0.6,
        periods=(window_s[1] - window_s[0]) / period,
        cost={"utilization_lost_ratio": 0.21 if relay else 0.01, "added_p99_s": 4.0 if relay else None},
        reason=f"{name} {'repeats itself' if relay else 'shows no peak above red noise'}",
        acf_lags_s=np.arange(len(acf)) * BIN_S,
        acf=acf,
        spectrum_hz=np.fft.rfftfreq(len(y), BIN_S),
        spectrum=spectrum,
    )


def page(runs: list[RunData]) -> str:
    """The report on these runs, in one file."""
    title, body, script = contents(runs)
    return document(title, body, script=script)
