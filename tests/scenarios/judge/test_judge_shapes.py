"""Shapes that real series have: flips, lost scrapes, logs of changes, hunting, days, loads; and the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scenarios.judge import judge_series
from scenarios.judge.read import Raw
from scenarios.report.judged_page import judged_page
from scenarios.verdict import known_signals as known
from tests.scenarios.judge.series import only, write

SEEDS, FOUND = 40, 38


def raw(x: np.ndarray, step_s: float = 15.0, name: str = "busy") -> Raw:
    return Raw(name=name, t_s=np.arange(len(x)) * step_s, values=np.asarray(x, dtype=float))


@pytest.mark.parametrize("samples", [200, 960, 5760])
def test_a_flip_at_every_sample_is_found_whatever_its_levels(samples: int) -> None:
    flip = np.where(np.arange(samples) % 2, 0.6, 0.4)
    for noise in (0.0, 0.02):
        judged = judge_series(raw(flip + noise * np.random.default_rng(1).standard_normal(samples)))
        assert judged.verdict.verdict == "limit_cycle"
        assert judged.verdict.period_s == pytest.approx(30.0, rel=0.005)
        assert judged.reversals_per_hour > 200


def lossy_sine(seed: int, share: float) -> Raw:
    rng = np.random.default_rng(seed)
    t = np.arange(0, 6000, 5.0)
    x = 10 + 2 * np.sin(2 * np.pi * (t / 100 + rng.uniform())) + 0.6 * rng.standard_normal(len(t))
    kept = rng.random(len(t)) > share
    return Raw(name="x", t_s=t[kept], values=x[kept])


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.25, 0.3, 0.4])
def test_a_sine_of_which_scrapes_are_lost_at_random_is_judged_whole(share: float) -> None:
    detected = 0
    for seed in range(SEEDS):
        judged = judge_series(lossy_sine(seed, share))
        assert judged.span_s > 5800
        detected += judged.verdict.oscillates and judged.verdict.period_s == pytest.approx(100, rel=0.01)
    assert detected >= FOUND


@pytest.mark.slow
def test_red_noise_with_lost_scrapes_is_steady() -> None:
    rng = np.random.default_rng(8)
    alarms = 0
    for x in 10 + known.red_noise(rng, 200, 1200, 0.9):
        kept = rng.random(1200) > 0.3
        judged = judge_series(Raw(name="x", t_s=5.0 * np.flatnonzero(kept), values=x[kept]))
        alarms += judged.verdict.verdict not in ("steady", "undecided")
    assert alarms <= 1


def test_a_log_of_changes_is_a_step_function_and_not_a_scrape_with_gaps() -> None:
    stays = np.where(np.arange(120) % 2, 15.0, 75.0) + np.tile([0.0, 0.0, 0.0, 5.0], 30)
    log = Raw(name="workers", t_s=np.cumsum(stays), values=2.0 + np.arange(120) % 2)
    judged = judge_series(log)
    assert judged.held
    assert any("one a change" in note for note in judged.notes)
    assert judged.verdict.verdict == "limit_cycle"
    assert judged.verdict.period_s == pytest.approx(92.5, rel=0.01)
    assert judged.span_s == pytest.approx(log.t_s[-1] - log.t_s[0], rel=0.01)


def test_irregular_reversals_of_an_actuator_are_hunting_and_of_a_queue_are_not() -> None:
    rng = np.random.default_rng(3)
    path = np.repeat(np.clip(4 + np.cumsum(rng.choice([-1, 0, 1], 90)) % 4, 2, 8), 4)
    assert judge_series(raw(path, 5.0, "decode_workers")).verdict.verdict == "hunting"
    assert judge_series(raw(path, 5.0, "waiting_turns")).verdict.verdict == "steady"
    load = Raw(name="load", t_s=np.arange(len(path)) * 5.0, values=np.roll(path, -2) * 10.0)
    assert judge_series(raw(path, 5.0, "decode_workers"), inputs={"load": load}).verdict.verdict == "steady"


def test_the_wave_of_a_day_is_the_calendars() -> None:
    t = np.arange(0, 14 * 86400, 900.0)
    noise = 0.2 * np.random.default_rng(2).standard_normal(len(t))
    judged = judge_series(Raw(name="replicas", t_s=t, values=np.round(10 + 6 * np.sin(2 * np.pi * t / 86400) + noise)))
    assert judged.verdict.verdict == "driven"
    assert "wave of a day" in judged.verdict.reason
    assert judged.likely == "the wave of a day, not the controller"


def test_a_load_that_answers_the_loop_does_not_drive_it(tmp_path: Path) -> None:
    t = np.arange(0, 7200, 5.0)
    rng = np.random.default_rng(4)
    replicas = 4 + 2 * ((t // 150) % 2)
    # What waits grows while replicas are few and shrinks while they are many: an integral of what the scaler does.
    queue = 60 + np.cumsum(0.2 * (5 - np.r_[4, replicas[:-1]]) * 5 + 0.3 * rng.standard_normal(len(t)))
    path = write(tmp_path / "x.csv", t_s=t, replicas=replicas, queue=queue)
    assert only(path, load="queue").verdict.verdict == "limit_cycle"


def test_no_mechanism_is_named_that_its_own_count_denies() -> None:
    rng = np.random.default_rng(15)
    x = np.concatenate([np.r_[np.full(20, rng.integers(1, 3)), np.full(11, rng.integers(17, 23))] for _ in range(24)])
    judged = judge_series(raw(x, 2.0, "pods"))
    assert judged.verdict.verdict == "limit_cycle"
    assert "unseen" not in judged.likely
    assert "high for" in judged.likely


def test_a_day_of_samples_makes_a_small_page_that_shows_every_swing() -> None:
    t = 15.0 * np.arange(5760)
    x = 4 + 2.0 * ((t // 90) % 2)
    judged = judge_series(Raw(name="replicas", t_s=t, values=x, epoch_s=1_790_000_000.0))
    page = judged_page([judged] * 8, "day.csv")
    assert len(page.encode()) < 1_000_000
    assert "time (UTC)" in page
    assert "units an hour taken away and brought back" in page
    assert "http" not in page
