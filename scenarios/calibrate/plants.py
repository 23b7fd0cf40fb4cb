"""Calibration runs of the simulated plants: nulls and cycles whose truth is known before they begin.

Nulls: open admission before tandem, fluid and cluster plants, under Poisson, red-noise and daily demand; and two
laws that pace work in flight, which theory calls steady. Cycles: relays, a ring of fixed
residence, and a scaler that is blind to one tick; the period of each run is counted from the moves of its actuator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from scenarios.calibrate.series import ALARMS, rng_of, short
from scenarios.catalogue.verdict import SignalVerdict
from scenarios.run.execute import run
from scenarios.run.result import Run
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario

RUNS = 80
# The verdicts of so many runs stand in the table separately, for a test to repeat.
FIRST = 10
# A signal that moves by less than this share of its scale (a queue before open admission) is not counted.
MOVES_RATIO = 1e-3
WARMUP_S, WINDOW_S, STEP_S = 60.0, 800.0, 5.0
# Forty laps and more: the switches of a relay in turns come unevenly, and the count itself must be known to 1 %.
RELAY_S = 1400.0
Parts = dict[str, Any]  # Any: tables of a scenario, as its schema takes them
Demand = Callable[[np.random.Generator, float], Parts]


def poisson(_: np.random.Generator, rate_per_s: float) -> Parts:
    """Return arrivals at a constant rate."""
    return {"kind": "poisson", "rate_per_s": rate_per_s}


def red(rng: np.random.Generator, rate_per_s: float, swing: float = 0.0) -> Parts:
    """Return arrivals whose rate wanders as AR(1) noise, about a wave of 1 to 3 periods in the run if it swings."""
    n = int((WARMUP_S + WINDOW_S) / STEP_S)
    phi, size = rng.uniform(0.5, 0.95), rng.uniform(0.05, 0.2)
    noise = np.zeros(n)
    noise[0] = rng.standard_normal()
    for k in range(1, n):
        noise[k] = phi * noise[k - 1] + np.sqrt(1 - phi**2) * rng.standard_normal()
    wave = np.sin(2 * np.pi * (rng.uniform(1.0, 3.0) * np.arange(n) / n + rng.uniform()))
    rates = rate_per_s * np.clip(1 + size * noise + swing * wave, 0.0, 1 / 0.9)
    return {"kind": "step", "steps": [{"at_s": k * STEP_S, "rate_per_s": float(r)} for k, r in enumerate(rates)]}


def daily(rng: np.random.Generator, rate_per_s: float) -> Parts:
    """Return red-noise arrivals on a slow wave of 30 %."""
    return red(rng, 0.75 * rate_per_s, swing=0.3)


def tandem(slots: int, mean_s: float, dead_s: float, kind: str = "tandem", **shape: Any) -> Parts:
    """Return a tandem (or fluid) plant."""
    more = {"step_s": 0.05} if kind == "fluid" else {}
    residence = {"mean_s": mean_s, **shape}
    return {"kind": kind, "slots": slots, "dead_time_s": dead_s, "residence": residence, **more}


def _times(base_s: float, per_sequence_s: float = 0.0, per_new_token_s: float = 0.0) -> Parts:
    spans = {"base_s": base_s, "per_sequence_s": per_sequence_s, "per_new_token_s": per_new_token_s}
    return {"kind": "linear", "per_kv_token_s": 0.0, **spans}


DISAGGREGATED = {
    "kind": "cluster",
    "configurations": {
        "fill": {"role": "fill", "chunk_tokens": 512, "times": _times(0.01, per_new_token_s=1e-4)},
        "decode": {"role": "decode", "slots": 16, "times": _times(0.02, per_sequence_s=5e-4)},
    },
    "racks": [{"workers": 6, "uplink_bytes_per_s": 50e9}],
    "pools": [{"configuration": "fill", "workers": 2}, {"configuration": "decode", "workers": 4}],
}
AGGREGATED = {
    "kind": "cluster",
    "configurations": {"serve": {"role": "aggregated", "slots": 16, "times": _times(0.03, 5e-4, 1e-5)}},
    "racks": [{"workers": 3, "uplink_bytes_per_s": 50e9}],
    "pools": [{"configuration": "serve", "workers": 3}],
}
LENGTHS = {"prompt": {"shape": "fixed", "mean_tokens": 512}, "output": {"shape": "exponential", "mean_tokens": 100}}
HOLD: Parts = {"kind": "hold"}
# Family: (plant, demand, its mean rate in turns/s, admission law).
NULLS: Mapping[str, tuple[Parts, Demand, float, Parts]] = {
    "tandem_64_at_0.8": (tandem(64, 5.0, 1.0), poisson, 0.8 * 12.8, HOLD),
    "tandem_32_erlang4_at_0.9": (tandem(32, 5.0, 2.0, shape="erlang", stages=4), poisson, 0.9 * 6.4, HOLD),
    "tandem_16_at_0.95": (tandem(16, 4.0, 1.0), poisson, 0.95 * 4.0, HOLD),
    "tandem_48_lognormal_at_0.85": (tandem(48, 6.0, 1.0, shape="lognormal", cv_ratio=1.5), poisson, 0.85 * 8.0, HOLD),
    "tandem_48_fixed_at_0.75": (tandem(48, 6.0, 2.0, shape="fixed"), poisson, 0.75 * 8.0, HOLD),
    "single_server_at_0.8": (tandem(1, 0.5, 0.0), poisson, 0.8 * 2.0, HOLD),
    "tandem_64_red_demand": (tandem(64, 5.0, 1.0), red, 0.75 * 12.8, HOLD),
    "tandem_64_daily_demand": (tandem(64, 5.0, 1.0), daily, 0.9 * 12.8, HOLD),
    "fluid_64_red_demand": (tandem(64, 5.0, 1.0, kind="fluid"), red, 0.75 * 12.8, HOLD),
    "fluid_64_daily_demand": (tandem(64, 5.0, 1.0, kind="fluid"), daily, 0.9 * 12.8, HOLD),
    "cluster_disaggregated_at_0.7": (DISAGGREGATED, poisson, 14.0, HOLD),
    "cluster_aggregated_daily": (AGGREGATED, daily, 9.0, HOLD),
    "paced_work_in_flight": (
        tandem(64, 5.0, 5.0),
        lambda rng, rate: {"kind": "saturated", "waiting_turns": 64},
        0.0,
        {"kind": "paced_wip", "residence_s": 5.0, "dead_time_s": 5.0},
    ),
    "predicted_buffer": (
        tandem(64, 5.0, 5.0),
        lambda rng, rate: {"kind": "saturated", "waiting_turns": 64},
        0.0,
        {"kind": "predictive_buffer", "dead_time_s": 5.0, "full_per_s": 12.8},
    ),
}


def scenario_of(name: str, number: int) -> Scenario:
    """Return one run of a family of nulls: demand and seed are drawn by the family's name and the run's number."""
    plant, demand, rate, law = NULLS[name]
    rng = rng_of(f"{name} {number}")
    work = demand(rng, rate)
    lengths = LENGTHS if plant["kind"] == "cluster" else {}
    return Scenario.model_validate(
        {
            "title": name,
            "question": "is a plant without a cycle called one?",
            "seed": int(rng.integers(2**31)),
            "horizon_s": WARMUP_S + WINDOW_S,
            "warmup_s": WARMUP_S,
            "workload": {**work, **lengths},
            "plant": plant,
            "admission": {"max_release_per_s": 1000.0},
            "control": {"admission_period_s": 0.1},
            "record": {"signal_bin_s": 0.25},
            "candidates": [{"name": "law", "admission": law}],
        }
    )


def null_row(name: str, runs: int = RUNS) -> dict[str, Any]:
    """Return the verdicts on the signals of a family's runs; those that hardly move are not counted."""
    words: Counter[str] = Counter()
    first: Counter[str] = Counter()
    alarmed, alarms = 0, []
    for number in range(runs):
        verdicts = {k: v for k, v in judged(run(scenario_of(name, number))).items() if v.amplitude_ratio > MOVES_RATIO}
        words.update(v.verdict for v in verdicts.values())
        if number < FIRST:
            first.update(v.verdict for v in verdicts.values())
        alarms_of_run = [f"run {number}: {signal} {v.verdict}" for signal, v in verdicts.items() if v.verdict in ALARMS]
        alarmed += bool(alarms_of_run)
        alarms += alarms_of_run
    return {
        "runs": runs,
        "runs_with_an_alarm": alarmed,
        "series": sum(words.values()),
        "false_alarms": sum(count for word, count in words.items() if word in ALARMS),
        "undecided": words["undecided"],
        "alarms": alarms,
        "first_words": dict(sorted(first.items())),
    }


def judged(done: Run) -> dict[str, SignalVerdict]:
    """Return the verdicts on the signals of a run."""
    return dict(done.data.verdicts)


# ------------------------------------------------ cycles
def cycles() -> Iterator[tuple[str, str, str, float, Run]]:
    """Yield (family, signal, verdict, period in seconds, run); the period is counted from the moves of the actuator."""
    for slots, mean_s, dead_s, alpha, band in ((256, 5.0, 10.0, 2.0, 0.05), (256, 10.0, 5.0, 2.0, 0.05)):
        for kind, seeds in (("fluid", 1), ("tandem", 8)):
            for seed in range(seeds):
                scenario = _gate(tandem(slots, mean_s, dead_s, kind=kind), alpha * slots / mean_s, 1 - band, 1.0, seed)
                finished = run(scenario)
                name = f"relay_{kind}_{mean_s:g}_{dead_s:g}"
                yield name, "decode_occupancy_ratio", "limit_cycle", _laps(finished), finished
    for seed in range(8):
        finished = run(_gate(tandem(400, 10.0, 2.0), 80.0, 0.45, 0.55, seed))
        yield "relay_unsaturated", "decode_occupancy_ratio", "limit_cycle", _laps(finished), finished
    for dead_s in (6.0, 14.0):
        ring = load(
            "echo", [f"plant.dead_time_s={dead_s}", "plant.slots=128", "candidates.credit_n.admission.cap_turns=128"]
        )
        yield "ring_of_fixed_residence", "decode_occupancy_ratio", "echo", dead_s + 10.0, run(ring)
    blind = run(load("one_tick_blind"), "bare")
    yield "one_tick_blind", "workers_active", "limit_cycle", 90.0, blind


def _gate(plant: Parts, rate_per_s: float, open_at: float, close_at: float, seed: int) -> Scenario:
    # The fluid never quite fills its pool, so its gate closes a hair below that.
    top = min(close_at, 1.0 - 1e-9) if plant["kind"] == "fluid" else close_at
    law = {"kind": "retirement_gate", "open_at_ratio": open_at, "close_at_ratio": top}
    return Scenario.model_validate(
        {
            "title": "a relay",
            "question": "is it found?",
            "seed": int(rng_of(f"relay {plant} {seed}").integers(2**31)),
            "horizon_s": RELAY_S,
            "warmup_s": 100.0,
            "workload": {"kind": "saturated", "waiting_turns": 256},
            "plant": plant,
            "admission": {"max_release_per_s": rate_per_s},
            "control": {"admission_period_s": 0.05},
            "candidates": [{"name": "gate", "admission": law}],
        }
    )


def _laps(done: Run) -> float:
    # The mean span between openings of the gate within the window: a count, which uses no correlations.
    released = done.signals["admitted_turns"].to_numpy(dtype=np.float64)
    gate = released / released.max()
    t = done.signals["t_s"].to_numpy(dtype=np.float64)
    opened = t[1:][(gate[1:] >= 0.5) & (gate[:-1] < 0.5) & (t[1:] >= 100.0)]
    # A gate that flutters at its level in turns opens once a lap, not thrice.
    apart = opened[np.concatenate([[True], np.diff(opened) > 0.5 * float(np.median(np.diff(opened)))])]
    return float((apart[-1] - apart[0]) / (len(apart) - 1))


def cycle_rows() -> dict[str, dict[str, float]]:
    """Return, for each family, how many of its cycles were found, how many with the right verdict, the worst period."""
    rows: dict[str, dict[str, float]] = {}
    for name, signal, word, period_s, finished in cycles():
        verdict = judged(finished)[signal]
        row = rows.setdefault(name, {"series": 0, "found": 0, "named": 0, "worst_period_error_ratio": 0.0})
        row["series"] += 1
        row["found"] += verdict.oscillates
        row["named"] += verdict.verdict == word
        error = abs((verdict.period_s or np.inf) / period_s - 1)
        row["worst_period_error_ratio"] = max(row["worst_period_error_ratio"], short(error))
    return rows
