"""The layer model against public measurements, through the queue where the measurement had one."""

from __future__ import annotations

import functools

import pytest

from plant.model.placement import Placement, check_placement
from plant.model.regimes import fill, setting_of
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS
from scenarios.plan.published import FP8, measured_rows
from scenarios.plan.serving import Load, closed_loop
from scenarios.plan.validate import Prediction, as_markdown, as_plain, by_regime, leave_one_out, predictions, summarise
from tests.paths import ROOT

DOCS = ROOT / "docs" / "validation.md"


@functools.cache
def points() -> tuple[Prediction, ...]:
    return tuple(predictions())


def all_but_first_tokens() -> list[Prediction]:
    return [p for p in points() if p.row.kind != "served_ttft"]


def test_at_least_forty_rows_each_with_a_source_and_no_name_twice() -> None:
    rows = measured_rows()
    assert len(rows) >= 90
    assert len({row.name for row in rows}) == len(rows)
    assert all(row.source and row.measured > 0 for row in rows)


def test_errors_over_all_rows_stay_below_the_bound() -> None:
    all_rows = summarise(all_but_first_tokens())
    assert all_rows.rows == len(measured_rows()) - len(by_regime(list(points()))["served_ttft"])
    assert all_rows.median_abs_error <= 0.16
    assert all_rows.mean_abs_error <= 0.24
    assert abs(all_rows.bias) <= 0.10


def test_rows_that_set_no_constant_are_predicted_as_well() -> None:
    unset = summarise([p for p in points() if not p.row.sets])
    assert unset.rows >= 75
    assert unset.median_abs_error <= 0.16
    assert unset.mean_abs_error <= 0.24


@pytest.mark.slow
def test_a_launch_ratio_set_without_a_configuration_predicts_it_almost_as_well() -> None:
    held_out, all_rows = leave_one_out(all_but_first_tokens()), summarise(all_but_first_tokens())
    assert held_out.rows == all_rows.rows
    assert held_out.median_abs_error <= 0.16
    assert held_out.mean_abs_error <= 0.24
    assert abs(held_out.mean_abs_error - all_rows.mean_abs_error) < 0.03


def test_nine_in_ten_rows_lie_within_two_fifths() -> None:
    sizes = sorted(abs(p.error_ratio) for p in all_but_first_tokens())
    assert sizes[int(0.9 * len(sizes))] < 0.40


def test_first_tokens_come_right_only_through_the_queue() -> None:
    rows = [p for p in points() if p.row.kind == "served_ttft" and p.row.model == "kimi-k3"]
    assert max(abs(p.error_ratio) for p in rows) < 0.15
    k3 = setting_of(MODELS["kimi-k3"], HARDWARE["b300"], ENGINES["fused-2026h2"], Placement(tp=8, ep=1))
    alone = float(fill(k3, 8192.0).ttft_s)
    assert alone < 0.05 * next(p.row.measured for p in rows if p.row.concurrency == 64)


def test_first_tokens_are_met_within_three_tenths_at_the_median() -> None:
    rows = summarise(by_regime(list(points()))["served_ttft"])
    assert rows.rows >= 50
    assert rows.median_abs_error <= 0.30
    assert abs(rows.bias) <= 0.15


def test_every_engine_states_its_pair_and_fitted_ones_their_intervals() -> None:
    for engine in ENGINES.values():
        fixed, ratio = engine.first_token_fixed_interval_s, engine.first_token_ratio_interval
        assert (fixed is None) == (ratio is None)
        if fixed is not None and ratio is not None:
            assert fixed[0] <= engine.first_token_fixed_s <= fixed[1]
            assert ratio[0] <= engine.first_token_ratio <= ratio[1]
        else:
            assert (engine.first_token_fixed_s, engine.first_token_ratio) == (0.0, 1.0)


@pytest.mark.slow
def test_the_document_is_what_the_command_prints() -> None:
    assert DOCS.read_text(encoding="utf-8") == as_markdown(list(points()))


@pytest.mark.slow
def test_the_plain_form_hides_no_row() -> None:
    plain = as_plain(list(points()))
    rows = plain["rows"]
    assert isinstance(rows, list)
    assert plain["n"] == len(rows) == len(measured_rows())


def load(**changes: object) -> Load:
    values: dict[str, object] = {"concurrency": 8, "input_tokens": 2048, "output_tokens": 64, "requests": 40, **changes}
    return Load(**values)  # type: ignore[arg-type]  # fields as a mapping


SMALL = setting_of(MODELS["gpt-oss-120b"], HARDWARE["h200"], ENGINES["vllm-2026h1"], Placement())

ENGINE = SMALL.machine.engine


def first_token(waited_and_filled_s: float) -> float:
    return ENGINE.first_token_fixed_s + ENGINE.first_token_ratio * waited_and_filled_s


def test_a_lone_request_meets_no_queue() -> None:
    served = closed_loop(SMALL, load(concurrency=1, requests=3))
    assert served.ttft_s == pytest.approx(first_token(float(fill(SMALL, 2048.0).ttft_s) - ENGINE.step_s))


def test_requests_of_one_length_move_in_waves_and_wait_for_half_of_their_wave() -> None:
    served = closed_loop(SMALL, load(input_tokens=8192))
    ttft_s = float(fill(SMALL, 8192.0).ttft_s) - ENGINE.step_s
    assert served.ttft_s == pytest.approx(first_token(ttft_s * (8 + 1) / 2), rel=1e-6)


def test_throughput_obeys_little_s_law() -> None:
    served = closed_loop(SMALL, load(output_tokens=256, requests=400, spread_ratio=0.8))
    mean_output = 256 * 0.9
    waited = (served.ttft_s - ENGINE.first_token_fixed_s) / ENGINE.first_token_ratio
    lifetime = waited + served.tpot_s * (mean_output - 1)
    assert served.output_tokens_per_s * lifetime / mean_output == pytest.approx(8, rel=0.03)


def test_the_same_seed_gives_the_same_service() -> None:
    assert closed_loop(SMALL, load(spread_ratio=0.5)) == closed_loop(SMALL, load(spread_ratio=0.5))
    assert closed_loop(SMALL, load(spread_ratio=0.5)) != closed_loop(SMALL, load(spread_ratio=0.5, seed=1))


def test_a_long_prompt_over_an_fp8_cache_attends_at_the_rate_of_fp8() -> None:
    rows = [p for p in points() if p.row.kind == "fill"]
    assert len(rows) == 2
    assert max(abs(p.error_ratio) for p in rows) < 0.10
    half = rows[0].row
    wide = setting_of(MODELS[half.model], HARDWARE[half.hardware], ENGINES[half.engine], half.place, FP8)
    assert float(fill(wide, 131_072.0).ttft_s) > 1.7 * rows[0].predicted  # a bf16 cache


def test_every_row_is_a_placement_that_the_model_s_own_check_takes() -> None:
    for row in measured_rows():
        check_placement(MODELS[row.model], HARDWARE[row.hardware], row.place)
