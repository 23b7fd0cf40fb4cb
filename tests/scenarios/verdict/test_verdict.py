"""The words, each on a series that has earned it and on the nearest one that has not."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.verdict import Cost, Series, SignalVerdict, flow_of, flow_word, headline, judge_run, judge_signal
from scenarios.verdict import known_signals as known
from scenarios.verdict.acf import autocorrelation, peak_train
from scenarios.verdict.flow import added_p99_s

N, T_S, L_S = 512, 5.0, 10.0
FULL_PER_S = N / T_S
STEP_S = 0.25
TIME_S = np.arange(4000) * STEP_S


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def series(x: np.ndarray, scale: float = 1.0, **more: object) -> Series:
    return Series(name="x", step_s=STEP_S, mean=np.asarray(x, dtype=float), scale=scale, **more)  # type: ignore[arg-type]


def full_empty_period_s(pool: known.Pool, alpha: float, band_ratio: float) -> float:
    """The closed form of the full-empty relay orbit, written out here so that the test stands alone."""
    t, dead = pool.residence_s, pool.dead_time_s
    trough = (1 - band_ratio) * np.exp(-dead / t)
    return float((1 + alpha) * dead + t * np.log((alpha - trough) / (alpha - 1)) - t * np.log(1 - band_ratio))


def test_a_flat_line_is_constant() -> None:
    assert judge_signal(series(np.full(4000, 7.0))).verdict == "constant"


def test_a_record_of_a_few_samples_is_undecided_and_says_how_many_are_needed() -> None:
    verdict = judge_signal(series(np.sin(np.arange(20))))
    assert verdict.verdict == "undecided"
    assert "20 samples" in verdict.reason


def test_an_empty_record_is_undecided() -> None:
    assert judge_signal(series(np.empty(0))).verdict == "undecided"


def test_fewer_than_ten_periods_are_undecided_and_ten_are_not() -> None:
    noise = 0.01 * rng().standard_normal(4000)
    assert judge_signal(series(np.sin(2 * np.pi * TIME_S / 150) + noise)).verdict == "undecided"
    assert judge_signal(series(np.sin(2 * np.pi * TIME_S / 90) + noise)).verdict == "limit_cycle"


def test_a_queue_beyond_capacity_is_unbounded_and_one_within_is_not() -> None:
    steps = rng().exponential(1.05, 4000) - rng(2).exponential(1.0, 4000)
    overloaded = np.maximum(np.cumsum(steps), 0.0)
    assert judge_signal(series(overloaded, scale=100, stock=True)).verdict == "unbounded"
    bounded = known.reflected_walk(rng(), 1, 4000, 0.8)[0]
    assert judge_signal(series(bounded, scale=4, stock=True)).verdict == "steady"


def test_a_swing_that_follows_a_recorded_load_is_driven_and_not_blamed_on_the_loop() -> None:
    load = 10 + 3 * np.sin(2 * np.pi * TIME_S / 40) + 0.5 * rng().standard_normal(4000)
    follower = np.round(np.interp(TIME_S - 5, TIME_S, load)) + 0.2 * rng(2).standard_normal(4000)
    verdict = judge_signal(series(follower, scale=10), inputs={"load": load})
    assert verdict.verdict == "driven"
    assert verdict.period_s == pytest.approx(40, rel=0.01)
    assert judge_signal(series(follower, scale=10)).verdict == "limit_cycle"


def test_a_loop_that_rings_to_noise_is_not_driven_by_that_noise() -> None:
    shocks = rng().standard_normal(4000)
    x = resonance(shocks, period_s=10, zeta=0.03)
    assert judge_signal(series(x / x.std(), scale=5), inputs={"arrivals": shocks}).verdict == "quasi_cycle"


def resonance(shocks: np.ndarray, period_s: float, zeta: float) -> np.ndarray:
    from scipy import signal

    omega = 2 * np.pi * STEP_S / period_s
    sigma = zeta / np.sqrt(1 - zeta**2) * omega
    pole = np.exp(-sigma + 1j * omega)
    return np.asarray(signal.lfilter([1.0], [1, -2 * pole.real, abs(pole) ** 2], shocks))


def test_the_damping_and_period_of_a_noise_driven_loop_are_those_of_its_roots() -> None:
    zetas, periods = [], []
    for seed in range(12):
        x = resonance(rng(seed).standard_normal(8000), period_s=10, zeta=0.04)
        verdict = judge_signal(series(x / x.std(), scale=5))
        assert verdict.verdict == "quasi_cycle"
        assert verdict.damping_ratio is not None
        assert verdict.period_s is not None
        zetas.append(verdict.damping_ratio)
        periods.append(verdict.period_s)
    assert np.mean(zetas) == pytest.approx(0.04, rel=0.15)
    assert np.mean(periods) == pytest.approx(10, rel=0.01)


def test_a_decaying_oscillation_rings_and_a_growing_one_has_negative_damping() -> None:
    noise = 0.01 * rng().standard_normal(4000)
    omega, sigma = 2 * np.pi / 20, 0.005
    decaying = np.exp(-sigma * TIME_S) * np.cos(omega * TIME_S)
    falls = judge_signal(series(decaying + noise))
    assert falls.verdict == "ringing"
    assert falls.damping_ratio == pytest.approx(sigma / np.hypot(omega, sigma), rel=0.05)
    grows = judge_signal(series(decaying[::-1] + noise))
    assert grows.verdict == "growing"
    assert grows.damping_ratio == pytest.approx(-sigma / np.hypot(omega, sigma), rel=0.05)


@pytest.mark.parametrize(("stages", "damping"), [(0, 0.0), (100, np.pi * 0.05**2)])
def test_a_bunch_that_goes_round_is_an_echo_damped_by_its_dispersion(stages: int, damping: float) -> None:
    pool = known.Pool(slots=N, residence_s=10, dead_time_s=10, stages=stages)
    ring = known.ring(rng(), rows=8, members=N, pool=pool, window_s=1000)
    verdicts = [
        judge_signal(
            series(busy / N), transit_s=20, admissions=ring.admitted_per_s[i], retirements=ring.retired_per_s[i]
        )
        for i, busy in enumerate(ring.busy)
    ]
    assert {verdict.verdict for verdict in verdicts} == {"echo"}
    assert np.mean([verdict.period_s for verdict in verdicts]) == pytest.approx(20, rel=0.01)
    assert np.mean([verdict.damping_ratio for verdict in verdicts]) == pytest.approx(damping, rel=0.06, abs=2e-4)


def test_a_bunch_of_dispersed_turns_is_steady_after_ten_laps() -> None:
    pool = known.Pool(slots=N, residence_s=10, dead_time_s=10)
    ring = known.ring(rng(), rows=20, members=N, pool=pool, window_s=1200, jitter_cv=0.3)
    late = slice(round(200 / ring.step_s), None)
    for i, busy in enumerate(ring.busy):
        flows = {"admissions": ring.admitted_per_s[i, late], "retirements": ring.retired_per_s[i, late]}
        assert judge_signal(series(busy[late] / N, one_turn=1 / N), transit_s=20, **flows).verdict == "steady"
        rate = series(ring.retired_per_s[i, late], scale=N / 10, one_turn=1 / STEP_S, flow=True)
        assert judge_signal(rate, transit_s=20, **flows).verdict == "steady"


FULL_EMPTY = [(512, 5, 10, 2.0, 0.05), (512, 10, 5, 2.0, 0.05), (512, 10, 10, 1.5, 0.1), (64, 5, 10, 2.0, 0.1)]


@pytest.mark.slow
@pytest.mark.parametrize(("slots", "residence_s", "dead_s", "alpha", "band"), FULL_EMPTY)
def test_the_full_empty_cycle_is_found_in_every_signal_with_its_period(
    slots: int, residence_s: float, dead_s: float, alpha: float, band: float
) -> None:
    pool = known.Pool(slots=slots, residence_s=residence_s, dead_time_s=dead_s)
    gate = known.Control(
        law="relay", ceiling_per_s=alpha * slots / residence_s, low=slots * (1 - band), high=slots * (1 - 1e-9)
    )
    fluid = known.run_pool(pool, gate, rng=rng(), rows=1, warmup_s=150, window_s=600, dt_s=0.02, bin_s=0.2, noise=False)
    # The simulation acts on what it saw a step ago, so its dead time is one step longer than the pool's.
    late = known.Pool(slots=slots, residence_s=residence_s, dead_time_s=dead_s + 0.02)
    for x, scale in ((fluid.busy, slots), (fluid.ready, slots), (fluid.admitted_per_s, slots / residence_s)):
        verdict = judge_signal(Series(name="x", step_s=fluid.step_s, mean=x[0], scale=scale))
        assert verdict.verdict == "limit_cycle"
        assert verdict.period_s == pytest.approx(full_empty_period_s(late, alpha, band), rel=0.005)
        assert abs(verdict.damping_ratio or 0.0) < 0.002


def test_a_fast_chatter_inside_the_bins_is_not_called_steady() -> None:
    level = np.full(4000, 0.5) + 1e-3 * rng().standard_normal(4000)
    verdict = judge_signal(series(level, minimum=level - 0.4, maximum=level + 0.4))
    assert verdict.verdict == "undecided"
    assert "finer" in verdict.reason


def test_two_humps_a_period_do_not_halve_the_period() -> None:
    phase = 2 * np.pi * TIME_S / 50
    x = 0.5 * np.sin(phase) + np.sin(2 * phase) + 0.05 * rng().standard_normal(4000)
    assert judge_signal(series(x)).period_s == pytest.approx(50, rel=0.01)


def test_a_cycle_that_rides_on_a_slow_wave_is_found() -> None:
    x = 5 * np.sin(2 * np.pi * TIME_S / 700) + np.sin(2 * np.pi * TIME_S / 21) + 0.1 * rng().standard_normal(4000)
    verdict = judge_signal(series(x))
    assert verdict.verdict == "limit_cycle"
    assert verdict.period_s == pytest.approx(21, rel=0.01)


def test_a_ripple_below_the_effect_floor_is_steady_and_keeps_its_period() -> None:
    verdict = judge_signal(series(0.5 + 0.01 * np.sin(2 * np.pi * TIME_S / 20)))
    assert verdict.verdict == "steady"
    assert verdict.period_s == pytest.approx(20, rel=0.01)


@given(factor=st.floats(1e-3, 1e3), offset=st.floats(-1e3, 1e3), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_units_do_not_change_the_word(factor: float, offset: float, seed: int) -> None:
    x = np.sign(np.sin(2 * np.pi * TIME_S[:1000] / 12.3)) + 0.3 * rng(seed).standard_normal(1000)
    plain, scaled = judge_signal(series(x)), judge_signal(series(factor * x + offset, scale=factor))
    assert (plain.verdict, plain.p_value) == (scaled.verdict, scaled.p_value)
    assert plain.period_s == pytest.approx(scaled.period_s, rel=1e-6)


def test_thirty_nulls_are_never_called_cycles() -> None:
    rows = np.concatenate(
        (
            known.red_noise(rng(3), 10, 2000, 0.98),
            known.reflected_walk(rng(4), 10, 2000, 0.8),
            known.diurnal(rng(5), 10, 2000, 0.9),
        )
    )
    words = {judge_signal(series(x, scale=3 * float(x.std()), stock=True)).verdict for x in rows}
    assert words <= {"steady", "undecided"}


# ------------------------------------------------------------------ a whole run


def record() -> pd.DataFrame:
    gate = known.Control(law="relay", ceiling_per_s=2 * FULL_PER_S, low=0.95 * N, high=N)
    pool = known.Pool(slots=N, residence_s=T_S, dead_time_s=L_S)
    bins = known.run_pool(pool, gate, rng=rng(), rows=1, warmup_s=0, window_s=1400, dt_s=0.125)
    columns: dict[str, np.ndarray] = {"t_s": np.arange(bins.busy.shape[1]) * bins.step_s}
    for name, x in {
        "decode_occupancy_ratio": bins.busy[0] / N,
        "ready_turns": bins.ready[0],
        "backlog_turns": np.full(bins.busy.shape[1], float(N)),
        "in_flight_turns": bins.busy[0] + bins.ready[0],
        "workers_active": np.ones(bins.busy.shape[1]),
    }.items():
        columns |= {f"{name}_mean": x, f"{name}_min": x, f"{name}_max": x}
    columns["arrived_turns"] = columns["admitted_turns"] = bins.admitted_per_s[0] * bins.step_s
    columns["retired_turns"] = bins.retired_per_s[0] * bins.step_s
    columns["command.admission.gate_open"] = np.where(bins.admitted_per_s[0] > 1, 1.0, 0.0)
    columns["command.admission.gate_open"][:3] = np.nan
    return pd.DataFrame(columns)


def test_a_run_is_judged_signal_by_signal_with_its_cost_and_headline() -> None:
    signals = record()
    verdicts = judge_run(signals, slots=N, service_per_s=FULL_PER_S, warmup_s=400, horizon_s=1400)
    cycling = {name for name, verdict in verdicts.items() if verdict.verdict == "limit_cycle"}
    assert cycling == set(verdicts) - {"backlog_turns", "workers_active"}
    busy = verdicts["decode_occupancy_ratio"]
    assert busy.period_s == pytest.approx(33.39 + 2 * 0.125, rel=0.02)
    assert busy.cost["utilization_lost_ratio"] == pytest.approx(1 - 0.787, abs=0.01)
    window = signals[signals["t_s"] >= 400]
    flow = flow_of(window["decode_occupancy_ratio_mean"].to_numpy(), window["backlog_turns_mean"].to_numpy())
    line = headline(verdicts, flow_word(flow, endless_work=True))
    assert line.startswith("limit cycle, period 33.")
    assert line.endswith("cost 21 %, starved") or line.endswith("cost 22 %, starved")
    assert json.loads(json.dumps(busy.to_json()))["verdict"] == "limit_cycle"


def test_a_chatter_of_the_door_alone_is_no_cycle_of_the_factory_until_it_costs() -> None:
    def verdict_of(signal: str, word: str, lost: float) -> SignalVerdict:
        cost: Cost = {"utilization_lost_ratio": lost, "added_p99_s": None}
        return SignalVerdict(signal=signal, verdict=word, reason="", period_s=0.5, cost=cost, amplitude_ratio=0.9)  # type: ignore[arg-type]  # a word

    door = ("admission_per_s", "command.admission.gate_open")
    for lost, ready, line in (
        (0.004, "steady", "steady, fed"),
        (0.04, "steady", "limit cycle, period 0.5 s, cost 4 %, fed"),
        (0.004, "limit_cycle", "limit cycle, period 0.5 s, cost 0 %, fed"),
    ):
        words = {"decode_occupancy_ratio": "steady", "ready_turns": ready} | dict.fromkeys(door, "limit_cycle")
        assert headline({name: verdict_of(name, word, lost) for name, word in words.items()}, "fed") == line


def test_flow_words_part_fed_starved_and_saturated() -> None:
    full, half, waits, idle = np.full(100, 0.99), np.full(100, 0.5), np.ones(100), np.zeros(100)
    assert flow_word(flow_of(full, waits)) == "saturated"
    assert flow_word(flow_of(full, waits), endless_work=True) == "fed"
    assert flow_word(flow_of(half, waits)) == "starved"
    assert flow_word(flow_of(half, idle)) == "fed"


def test_a_cycle_in_the_latency_adds_to_its_99th_percentile_and_noise_adds_little() -> None:
    at_s = np.sort(rng().uniform(0, 1000, 20_000))
    noise = rng(2).exponential(1.0, 20_000)
    added = added_p99_s(at_s, 5 + noise + 4 * np.sin(2 * np.pi * at_s / 30), 30)
    assert added is not None
    assert added > 2.0
    assert (added_p99_s(at_s, 5 + noise, 30) or 0.0) < 0.2
    assert added_p99_s(at_s[:50], noise[:50], 30) is None


@given(seed=st.integers(0, 10_000), lag=st.floats(2.0, 60.0), slow=st.floats(0.5, 0.999))
@settings(max_examples=60, deadline=None)
def test_a_train_of_peaks_always_moves_on_and_ends(seed: int, lag: float, slow: float) -> None:
    acf = autocorrelation(known.red_noise(rng(seed), 1, 400, slow))[0]
    lags, heights = peak_train(acf, lag, floor=-1.0)
    assert len(lags) == len(heights) <= len(acf) / (0.5 * lag)
    assert np.all(np.diff(lags) > 0.5 * lag)
