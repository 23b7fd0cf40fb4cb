"""Tables for the event loop: consistent with themselves, with the layer model, and with what lies on disk."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.model.placement import Placement, PlacementError
from plant.model.regimes import decode, run_pass, setting_of
from plant.model.step_table import StepTable
from plant.model.table_cache import cache_directory, cached_arrays, digest_of
from plant.model.tables import STEP_ERROR_RATIO, Speculation, step_times
from plant.model.times import StepTimes
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS
from scenarios.build.moe import build_moe_times, build_moe_worker
from scenarios.errors import UserError
from scenarios.schema.moe import MoePlacement, MoeTimes

# One of each shape: linear in the context, a window, a top-k, hidden transfers, a pipeline, speculation.
CASES: dict[str, tuple[str, str, str, Placement, Speculation]] = {
    "k3 wide": ("kimi-k3", "gb200-nvl72", "fused-2026h2", Placement(dp=64), Speculation()),
    "k3 pipeline": ("kimi-k3", "gb200-nvl72", "fused-2026h2", Placement(pp=2, tp=8, ep=8), Speculation()),
    "gpt-oss window": ("gpt-oss-120b", "h200", "vllm-2026h1", Placement(tp=2), Speculation()),
    "glm-5 top-k": ("glm-5", "b200", "sglang-2026h1", Placement(tp=8), Speculation()),
    "v3 overlap": ("deepseek-v3", "h800", "wide-ep-2025", Placement(dp=128), Speculation()),
    "v3 drafts": (
        "deepseek-v3",
        "b200",
        "fused-2026h2",
        Placement(tp=8),
        Speculation(draft_tokens=1, accepted_tokens=1.6),
    ),
}


@functools.cache
def table(case: str) -> StepTable:
    model, hardware, engine, place, speculation = CASES[case]
    return step_times(
        model=MODELS[model],
        hardware=HARDWARE[hardware],
        engine=ENGINES[engine],
        placement=place,
        speculation=speculation,
        max_batch=2048,
        cache=False,
    )


cases = st.sampled_from(list(CASES))
batches = st.integers(1, 2048)
contexts = st.integers(0, 120_000)


def test_a_table_is_step_times() -> None:
    times: StepTimes = table("k3 wide")
    assert times.step_s(0, 0) == 0.0
    assert times.step_s(64, 64 * 8192) > 0.0


@settings(max_examples=150, deadline=None)
@given(cases, batches, contexts, st.integers(0, 5000))
def test_steps_within_inverts_span(case: str, batch: int, context: int, steps: int) -> None:
    t, kv = table(case), batch * context
    span = t.span_s(batch, kv, steps)
    assert t.steps_within(batch, kv, span) == steps
    if steps:
        assert t.steps_within(batch, kv, span * (1 - 1e-9)) == steps - 1


@settings(max_examples=150, deadline=None)
@given(cases, batches, contexts, st.floats(0.0, 60.0))
def test_span_of_steps_within_does_not_exceed_the_span_asked_for(
    case: str, batch: int, context: int, span: float
) -> None:
    t, kv = table(case), batch * context
    n = t.steps_within(batch, kv, span)
    assert t.span_s(batch, kv, n) <= span * (1 + 1e-9)
    assert t.span_s(batch, kv, n + 1) > span


@settings(max_examples=100, deadline=None)
@given(cases, batches, contexts, st.integers(1, 400), st.integers(1, 400))
def test_spans_join(case: str, batch: int, context: int, first: int, second: int) -> None:
    t, kv = table(case), batch * context
    joined = t.span_s(batch, kv, first) + t.span_s(batch, kv + batch * first, second)
    assert joined == pytest.approx(t.span_s(batch, kv, first + second), rel=1e-9)


@settings(deadline=None)
@given(cases, st.integers(1, 64), contexts, st.integers(1, 60))
def test_a_span_is_the_sum_of_its_steps(case: str, batch: int, context: int, steps: int) -> None:
    t = table(case)
    summed = math.fsum(t.step_s(batch, batch * (context + i)) for i in range(steps))
    assert t.span_s(batch, batch * context, steps) == pytest.approx(summed, rel=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_a_step_is_the_layer_model_s_within_the_stated_error(case: str) -> None:
    model, hardware, engine, place, speculation = CASES[case]
    t = table(case)
    assert t.error_ratio <= STEP_ERROR_RATIO
    setting = setting_of(MODELS[model], HARDWARE[hardware], ENGINES[engine], place)
    rng = np.random.default_rng(1)
    ranks = place.dp * place.pp
    for _ in range(200):
        batch, context = int(rng.integers(1, 2049)), float(rng.integers(200, 120_000))
        want = decode(
            setting,
            math.ceil(batch / ranks),
            context,
            draft_tokens=speculation.draft_tokens,
            accepted_tokens=speculation.accepted_tokens,
        )
        assert t.step_s(batch, int(batch * context)) == pytest.approx(float(want.tpot_s), rel=3e-3)


@pytest.mark.parametrize("case", CASES)
def test_a_chunk_is_the_layer_model_s_within_half_a_percent(case: str) -> None:
    model, hardware, engine, place, _ = CASES[case]
    t = table(case)
    setting = setting_of(MODELS[model], HARDWARE[hardware], ENGINES[engine], place)
    rng = np.random.default_rng(2)
    for _ in range(200):
        new, cached = int(rng.integers(1, 32_768)), int(rng.integers(0, 100_000))
        want = float(run_pass(setting, 1.0 / place.dp, new, cached, fill=True).seconds)
        assert t.mixed_s(0, 0, new, cached) == pytest.approx(want, rel=5e-3)


@settings(deadline=None)
@given(cases, st.integers(1, 256), st.integers(128, 60_000), st.integers(1, 8192), st.integers(0, 60_000))
def test_a_mixed_pass_costs_no_less_than_its_chunk_and_less_than_both_apart(
    case: str, batch: int, context: int, new: int, cached: int
) -> None:
    t, kv = table(case), batch * context
    both = t.mixed_s(batch, kv, new, cached)
    alone = t.mixed_s(0, 0, new, cached)
    assert both >= alone
    assert both < (alone + t.step_s(batch, kv)) * 1.02
    assert t.mixed_s(batch, kv, 0, cached) == t.step_s(batch, kv)


def test_lock_step_ranks_pay_for_the_fullest() -> None:
    t = table("k3 wide")
    assert t.step_s(64, 64 * 8192) == t.step_s(1, 8192)
    assert t.step_s(65, 65 * 8192) > t.step_s(64, 64 * 8192)


def test_a_batch_beyond_the_table_is_an_error_not_a_guess() -> None:
    with pytest.raises(IndexError):
        table("k3 wide").step_s(2049, 2049)


def test_occupancy_is_one_stage_of_the_latency() -> None:
    model, hardware, engine, place, _ = CASES["k3 pipeline"]
    kinds = [
        step_times(model=MODELS[model], hardware=HARDWARE[hardware], engine=ENGINES[engine], placement=place,
                   occupancy=o, max_batch=64, cache=False)
        for o in (False, True)
    ]  # fmt: skip
    assert kinds[1].mixed_s(0, 0, 8192, 0) == pytest.approx(kinds[0].mixed_s(0, 0, 8192, 0) / 2 * 94 / 93)


def test_the_cache_gives_the_same_table_and_survives_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEADYFLOW_CACHE_DIR", str(tmp_path))
    arguments = {
        "model": MODELS["kimi-k3"],
        "hardware": HARDWARE["gb200-nvl72"],
        "engine": ENGINES["fused-2026h2"],
        "placement": Placement(dp=16),
        "max_batch": 64,
    }
    first = step_times(**arguments)  # type: ignore[arg-type]  # one mapping for four calls
    stored = list((tmp_path / "tables").iterdir())
    assert [p.name for p in stored] == [f"{first.digest}.npz"]
    again = step_times(**arguments)  # type: ignore[arg-type]
    assert again.step_s(30, 300_000) == first.step_s(30, 300_000)
    assert again.mixed_s(3, 30_000, 777, 12_345) == first.mixed_s(3, 30_000, 777, 12_345)
    stored[0].write_bytes(b"half a file")
    mended = step_times(**arguments)  # type: ignore[arg-type]
    assert mended.step_s(30, 300_000) == first.step_s(30, 300_000)
    other = step_times(**{**arguments, "placement": Placement(dp=32)})  # type: ignore[arg-type]
    assert other.digest != first.digest


def test_the_cache_folder_follows_the_platform_s_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("STEADYFLOW_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "steadyflow" / "tables"


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("STEADYFLOW_CACHE_DIR", str(blocked))
    built = cached_arrays(digest_of("x"), lambda: {"a": np.asarray([1.0])})
    assert built["a"].tolist() == [1.0]


def test_a_scenario_s_times_build_a_table() -> None:
    times = MoeTimes(
        kind="moe", model="kimi-k3", hardware="gb200-nvl72", placement=MoePlacement(pp=2, tp=8, ep=8), max_batch=32
    )
    assert build_moe_times(times).step_s(4, 4 * 8192) > 0.005


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "kimi-k4"}, "times.model: `kimi-k4` is unknown (did you mean `kimi-k3`?)"),
        ({"hardware": "gb200-nv72"}, "times.hardware: `gb200-nv72` is unknown (did you mean `gb200-nvl72`?)"),
        ({"engine": "fused"}, "times.engine: `fused` is unknown"),
        ({"model": None}, "give `model` (a preset) or `config`"),
        ({"placement": MoePlacement(tp=7)}, "times.placement: tp=7 does not divide"),
        ({"accepted_tokens": 2.0}, "times.accepted_tokens: at most 1 + draft_tokens = 1"),
        ({"model": None, "config": Path("nowhere")}, "times.config: nowhere: No such file"),
    ],
)
def test_mistakes_in_a_scenario_s_times_are_one_line(changes: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"kind": "moe", "model": "kimi-k3", "hardware": "gb200-nvl72", **changes}
    with pytest.raises(UserError) as caught:
        build_moe_times(MoeTimes(**given))  # type: ignore[arg-type]  # fields as a mapping
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_placements_are_checked_before_anything_is_built() -> None:
    with pytest.raises(PlacementError):
        step_times(
            model=MODELS["kimi-k3"],
            hardware=HARDWARE["b200"],
            engine=ENGINES["fused-2026h2"],
            placement=Placement(tp=16),
        )


def test_a_worker_knows_its_size_its_cache_and_how_long_it_loads() -> None:
    worker = build_moe_worker(
        MoeTimes(
            kind="moe", model="kimi-k3", hardware="gb200-nvl72", placement=MoePlacement(pp=2, tp=8, ep=8), max_batch=8
        )
    )
    assert worker.gpus == 16
    assert worker.kv_bytes_per_token == pytest.approx(27_648)
    assert worker.state_bytes_per_turn == pytest.approx(449e6, rel=0.01)
    assert worker.load_s > 57.0
    assert worker.kv_capacity_tokens(8) > worker.kv_capacity_tokens(64) > 1_000_000


def test_a_placement_whose_weights_do_not_fit_is_refused_before_it_is_tabulated() -> None:
    with pytest.raises(UserError, match=r"times\.placement: pp1tp8dp1ep8: expert weights overflow"):
        build_moe_times(MoeTimes(kind="moe", model="kimi-k3", hardware="gb200-nvl72", placement=MoePlacement(tp=8)))
