"""The numbers of a summary: only the window counts, and the laws of queues hold on them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.run import metrics
from scenarios.run.metrics import Objective, summarize
from scenarios.verdict import flow as verdict_flow
from scenarios.verdict import run as verdict_run
from tests.scenarios.fake_runs import fake_run
from tests.scenarios.run.littles_law import STAGES, little

WORDS = ["retired", "rejected:overload", "failed:worker_lost", "waiting", "decoding"]


def turns(rows: list[dict[str, object]]) -> pd.DataFrame:
    plain: dict[str, object] = {
        "class": "chat",
        "arrived_s": 0.0,
        "released_s": 1.0,
        "filled_s": 2.0,
        "joined_s": 3.0,
        "ended_s": 12.0,
        "output_tokens": 11,
        "preemptions": 0,
        "outcome": "retired",
    }
    return pd.DataFrame([plain | row for row in rows])


def bins(occupancy: list[float], backlog: list[float], width_s: float = 1.0) -> pd.DataFrame:
    n = len(occupancy)
    return pd.DataFrame(
        {
            "t_s": np.arange(n) * width_s,
            "decode_occupancy_ratio_mean": occupancy,
            "backlog_turns_mean": backlog,
            "backlog_turns_min": backlog,
            "arrived_turns": np.ones(n),
            "admitted_turns": np.ones(n),
            "retired_turns": np.ones(n),
        }
    )


def test_littles_law_holds_on_every_stage() -> None:
    data = fake_run(relay=False, horizon_s=400.0, warmup_s=60.0).turns
    for stage in STAGES:
        measured = little(data, stage, (60.0, 360.0))
        assert measured.gap_ratio == pytest.approx(0.0, abs=0.03), (stage, measured)


def test_both_sides_of_littles_law_on_two_turns_by_hand() -> None:
    measured = little(turns([{}, {"joined_s": 4.0, "ended_s": 9.0}]), "decoding", (0.0, 20.0))
    assert measured.number_turns == pytest.approx((9 + 5) / 20)
    assert measured.rate_per_s == pytest.approx(2 / 20)
    assert measured.stay_s == pytest.approx(7.0)
    assert measured.gap_ratio == pytest.approx(0.0)


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50), st.sampled_from(WORDS)), min_size=1, max_size=30))
def test_counts_are_conserved(rows: list[tuple[float, float, str]]) -> None:
    table = turns([{"arrived_s": a, "ended_s": a + b, "outcome": word} for a, b, word in rows])
    c = metrics.counts(table)
    assert c["arrived"] == len(rows) == c["retired"] + c["rejected"] + c["failed"] + c["in_flight"]
    assert c["waiting"] <= c["in_flight"]


def test_latencies_come_from_the_four_instants() -> None:
    latency = metrics.latency(turns([{}]), (0.0, 20.0))
    assert latency["ttft_s"]["p50"] == 2.0
    assert latency["ttft_from_release_s"]["p50"] == 1.0
    assert latency["tpot_s"]["p99"] == pytest.approx(1.0)
    assert latency["e2e_s"]["p90"] == 12.0


def test_a_single_token_has_no_time_per_token() -> None:
    assert metrics.latency(turns([{"output_tokens": 1}]), (0.0, 20.0))["tpot_s"]["p50"] is None


def test_nothing_outside_the_window_is_averaged_in() -> None:
    table = turns([{}, {"arrived_s": 100.0, "filled_s": 190.0, "ended_s": 199.0}])
    assert metrics.latency(table, (0.0, 20.0))["e2e_s"]["p99"] == 12.0
    flow = metrics.flow(bins([0.0, 0.0, 1.0, 1.0, 0.0], [0, 0, 0, 0, 0]), (2.0, 4.0))
    assert flow["decode_utilization_ratio"] == 1.0


def test_a_bin_across_the_edge_of_the_window_is_left_out() -> None:
    flow = metrics.flow(bins([0.0, 1.0, 1.0], [0, 0, 0]), (0.5, 3.0))
    assert flow["decode_utilization_ratio"] == 1.0
    assert flow["retirement_per_s"] == 1.0


def test_a_run_shorter_than_its_warm_up_has_no_numbers() -> None:
    summary = summarize(turns([{}]), bins([1.0], [1.0]), window_s=(50.0, 60.0))
    assert summary["flow"]["decode_utilization_ratio"] is None
    assert summary["latency"]["e2e_s"]["p50"] is None
    assert summary["goodput"]["ratio"] is None


@pytest.mark.parametrize(
    ("occupancy", "backlog", "endless", "word"),
    [
        ([1.0] * 8, 600.0, True, "fed"),
        ([1.0] * 8, 600.0, False, "saturated"),
        ([0.5] * 8, 600.0, True, "starved"),
        ([0.5] * 8, 0.0, False, "fed"),
        ([0.5] + [1.0] * 39, 600.0, True, "fed"),
    ],
    ids=["full, endless work", "full, work waits", "work waits, pool does not", "underloaded", "a hungry fortieth"],
)
def test_the_flow_word(occupancy: list[float], backlog: float, endless: bool, word: str) -> None:
    n = len(occupancy)
    assert metrics.flow(bins(occupancy, [backlog] * n), (0.0, float(n)), endless_work=endless)["fed"] == word


@pytest.mark.parametrize("relay", [True, False])
@pytest.mark.parametrize("endless", [True, False])
def test_the_summary_and_the_verdict_agree_on_the_flow(relay: bool, endless: bool) -> None:
    run = fake_run(relay=relay)
    mine = metrics.flow(run.signals, run.window_s, endless_work=endless)
    window = verdict_run.window_of(run.signals, *run.window_s)
    theirs = verdict_flow.flow_of(
        window["decode_occupancy_ratio_mean"].to_numpy(), window["backlog_turns_min"].to_numpy()
    )
    assert mine["decode_utilization_ratio"] == pytest.approx(theirs.decode_utilization_ratio)
    assert mine["starved_ratio"] == pytest.approx(theirs.starved_ratio)
    assert mine["backlogged_ratio"] == pytest.approx(theirs.waiting_ratio)
    assert mine["fed"] == verdict_flow.flow_word(theirs, endless_work=endless)


def test_a_rejected_turn_has_missed_and_a_class_without_objective_does_not_count() -> None:
    table = turns(
        [{}, {"outcome": "rejected:overload", "filled_s": math.nan, "joined_s": math.nan}, {"class": "batch"}]
    )
    strict = {"chat": Objective(ttft_s=1.9), "batch": Objective()}
    assert metrics.goodput(table, (0.0, 20.0), strict) == {"ratio": 0.0, "turns_per_s": 0.0}
    assert metrics.goodput(table, (0.0, 20.0), {"chat": Objective(tpot_s=0.9)})["ratio"] == 0.0
    met = metrics.goodput(table, (0.0, 20.0), {"chat": Objective(ttft_s=2.0, tpot_s=1.0)})
    assert met == {"ratio": pytest.approx(1 / 2), "turns_per_s": 1 / 20}


@pytest.mark.parametrize("objectives", [{}, {"chat": Objective(), "batch": Objective()}])
def test_goodput_without_an_objective_is_absent(objectives: dict[str, Objective]) -> None:
    assert metrics.goodput(turns([{}]), (0.0, 20.0), objectives) == {"ratio": None, "turns_per_s": None}


def test_a_window_in_which_nothing_arrives_waits_or_runs_holds_no_work() -> None:
    record = bins([0.5, 0.5, 0.0, 0.0], [0.0] * 4)
    idle = record.assign(**{name: 0.0 for name in record if name != "t_s"})
    assert metrics.worked(record, (0.0, 4.0))
    assert not metrics.worked(idle, (0.0, 4.0))
    assert not metrics.worked(idle.iloc[:0], (5.0, 5.0))


def test_the_relay_starves_and_the_paced_door_does_not() -> None:
    relay, paced = fake_run(relay=True).summary["flow"], fake_run(relay=False).summary["flow"]
    assert relay["fed"] == "starved"
    assert paced["fed"] == "fed"
    assert relay["decode_utilization_ratio"] < 0.85 < 0.9 < paced["decode_utilization_ratio"]


def test_gpu_hours_are_worker_seconds_times_gpus() -> None:
    assert metrics.gpu_hours({"fill": 3600.0, "decode": 7200.0}, {"fill": 4, "decode": 8}) == 20.0


def test_a_fluid_run_is_counted_from_its_bins() -> None:
    empty = turns([{}]).iloc[:0]
    summary = summarize(empty, bins([1.0] * 4, [5.0] * 4), window_s=(0.0, 4.0))
    assert summary["counts"]["arrived"] == 4.0
    assert summary["counts"]["waiting"] == 5.0
    assert summary["by_class"] == {}
