"""Words for what grows, hunts, stalls or comes from a handful of turns; pulses; several cycles at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from scenarios.verdict import Series, judge_run, judge_signal
from scenarios.verdict import known_signals as known
from scenarios.verdict.outside import answers

STEP_S = 0.25
TIME_S = np.arange(4000) * STEP_S
SEEDS, FOUND = 40, 38


def series(x: np.ndarray, scale: float = 1.0, **more: object) -> Series:
    return Series(name="x", step_s=STEP_S, mean=np.asarray(x, dtype=float), scale=scale, **more)  # type: ignore[arg-type]


def pulses(seed: int, duty: float, period_s: float, height: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = 0.1 * abs(height) * known.red_noise(rng, 1, len(TIME_S), 0.9)[0] * np.sqrt(1 - 0.9**2)
    return np.asarray(1 + height * ((TIME_S / period_s + rng.uniform()) % 1 < duty) + noise)


@pytest.mark.slow
@pytest.mark.parametrize("height", [1.0, -0.6])
@pytest.mark.parametrize(("duty", "period_s"), [(0.06, 33.4), (0.08, 33.4), (0.08, 81.0), (0.12, 81.0)])
def test_trains_of_short_pulses_and_dips_are_cycles(duty: float, period_s: float, height: float) -> None:
    detected = 0
    for seed in range(SEEDS):
        verdict = judge_signal(series(pulses(seed, duty, period_s, height)))
        detected += verdict.oscillates and verdict.period_s == pytest.approx(period_s, rel=0.01)
    assert detected >= FOUND


@pytest.mark.slow
@pytest.mark.parametrize(("count", "width"), [(12, 10), (40, 20), (120, 4)])
def test_dips_at_random_instants_are_steady(count: int, width: int) -> None:
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, count])
        x = np.ones(len(TIME_S)) + 0.05 * rng.standard_normal(len(TIME_S))
        for at in rng.integers(0, len(TIME_S) - width, count):
            x[at : at + width] = 0.2
        alarms += judge_signal(series(x)).oscillates
    assert alarms <= 1


def growing(seed: int, factor: float, period_s: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    size = 0.5 * np.exp(np.log(factor) * (TIME_S / TIME_S[-1] - 1))
    noise = 0.02 * known.red_noise(rng, 1, len(TIME_S), 0.9)[0]
    return np.asarray(2 + size * np.sin(2 * np.pi * (TIME_S / period_s + rng.uniform())) + noise)


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "period_s"), [(5.0, 11.3), (5.0, 60.0), (20.0, 33.4)])
def test_an_oscillation_that_grows_is_called_growing(factor: float, period_s: float) -> None:
    verdicts = [judge_signal(series(growing(seed, factor, period_s), 2.0)) for seed in range(SEEDS)]
    assert sum(verdict.verdict == "growing" for verdict in verdicts) >= FOUND
    assert all(verdict.period_s == pytest.approx(period_s, rel=0.01) for verdict in verdicts)


def test_one_that_grew_at_first_and_then_keeps_its_size_is_a_limit_cycle() -> None:
    size = np.minimum(np.exp(TIME_S / 60 - 4), 1.0)
    noise = 0.02 * np.random.default_rng(1).standard_normal(len(TIME_S))
    assert judge_signal(series(2 + size * np.sin(2 * np.pi * TIME_S / 20) + noise)).verdict == "limit_cycle"


@pytest.mark.parametrize("ratio", [1.2, 1.5, 2.5, 4.3])
def test_two_cycles_in_one_signal_are_both_told(ratio: float) -> None:
    rng = np.random.default_rng(7)
    tones = np.sin(2 * np.pi * TIME_S / 20) + 0.7 * np.sin(2 * np.pi * (TIME_S / (20 * ratio) + rng.uniform()))
    verdict = judge_signal(series(2 + 0.5 * tones + 0.05 * rng.standard_normal(len(TIME_S)), 2.0))
    assert verdict.verdict == "limit_cycle"
    assert verdict.period_s is not None
    assert sorted([verdict.period_s, *verdict.other_periods_s]) == pytest.approx([20, 20 * ratio], rel=0.01)


def test_one_cycle_with_its_harmonics_is_one() -> None:
    for x in (np.sign(np.sin(2 * np.pi * TIME_S / 20)), (TIME_S / 33.4) % 1.0, 1.0 * ((TIME_S / 50) % 1 < 0.06)):
        assert judge_signal(series(x)).other_periods_s == ()


def test_a_cycle_of_a_handful_of_turns_is_undecided() -> None:
    wave = 5 + np.sin(2 * np.pi * TIME_S / 20)
    assert judge_signal(series(wave, turns=29.0)).verdict == "undecided"
    assert judge_signal(series(wave, turns=100.0)).verdict == "undecided"
    assert judge_signal(series(wave, turns=1000.0)).verdict == "limit_cycle"


def test_an_input_made_from_the_signal_answers_it_and_one_it_copies_does_not() -> None:
    rng = np.random.default_rng(2)
    load = np.sin(2 * np.pi * np.arange(800) / 16) + 0.3 * rng.standard_normal(800)
    copy = np.roll(load, 3) + 0.05 * rng.standard_normal(800)
    assert not answers(copy, load, 16.0)
    assert answers(load, copy, 16.0)


def record(stuck_from_s: float) -> pd.DataFrame:
    t = np.arange(0.0, 600.0, 0.5)
    retired = np.random.default_rng(1).poisson(1.0, len(t)) * (t < stuck_from_s)
    level = np.full(len(t), 6.0)
    return pd.DataFrame(
        {"t_s": t, "retired_turns": retired} | {f"in_flight_turns_{part}": level for part in ("mean", "min", "max")}
    )


def test_turns_that_never_end_are_stalled_and_a_run_that_ends_in_a_lull_is_not() -> None:
    def word(stuck_from_s: float) -> str:
        return judge_run(record(stuck_from_s), slots=8, service_per_s=2.0, warmup_s=0.0, horizon_s=600.0)[
            "in_flight_turns"
        ].verdict

    assert word(400.0) == "stalled"
    assert word(590.0) == "constant"
    empty = record(400.0)
    empty["in_flight_turns_min"] = 0.0
    verdicts = judge_run(empty, slots=8, service_per_s=2.0, warmup_s=0.0, horizon_s=600.0)
    assert verdicts["in_flight_turns"].verdict != "stalled"
