"""Placements that fit, messages for those that do not, and the memory laws of the essay (sections 8 and 14)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plant.model.memory import (
    crossover_stages,
    fits_stage,
    kv_bytes_per_token,
    largest_batch,
    memory,
    require_fit,
    state_bytes_per_sequence,
)
from plant.model.placement import Placement, PlacementError, check_placement, parse_placement, placements
from plant.model.regimes import setting_of, stage_excess_ratio
from plant.model.weight_loading import kv_capacity_tokens, reconfigure_s, weights_load_s
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS

K3, V3 = MODELS["kimi-k3"], MODELS["deepseek-v3"]
GB200, B200 = HARDWARE["gb200-nvl72"], HARDWARE["b200"]
ENGINE = ENGINES["fused-2026h2"]
widths = st.integers(1, 64)


@given(widths, widths, widths, widths, st.booleans())
def test_a_placement_reads_back_from_its_own_label(pp: int, tp: int, dp: int, ep: int, remote: bool) -> None:
    place = Placement(pp=pp, tp=tp, dp=dp, ep=ep, remote_experts=remote)
    assert parse_placement(place.label()) == place


@pytest.mark.parametrize("text", ["", "tp0", "xx3", "tp", "pp2 qq", "tp-4"])
def test_nonsense_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(PlacementError) as caught:
        parse_placement(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "hardware", "message"),
    [
        (Placement(tp=7), GB200, "tp=7 does not divide MLA's 96 heads; fits: [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]"),
        (Placement(tp=16), B200, "tp=16 is wider than the scale-up domain of 8"),
        (Placement(pp=94), GB200, "pp=94: kimi-k3 has 93 layers; at most pp=93"),
        (Placement(dp=1024), GB200, "ep=1024 is more than 896 experts and 0 replicas"),
        (Placement(dp=8, ep=3), GB200, "ep=3 does not divide the stage's 8 accelerators; fits: [1, 2, 4, 8]"),
        (Placement(tp=4, context_parallel=3), GB200, "cp=3 does not divide tp=4"),
        (Placement(dp=0), GB200, "widths start at 1"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_widths_that_do_not_divide_say_what_would(place: Placement, hardware: object, message: str) -> None:
    with pytest.raises(PlacementError) as caught:
        check_placement(K3, hardware, place)  # type: ignore[arg-type]  # parametrised values are objects to mypy
    assert message in str(caught.value)


def test_grouped_heads_are_repeated_beyond_their_number_but_not_torn() -> None:
    qwen = MODELS["qwen3-235b-a22b"]
    check_placement(qwen, GB200, Placement(tp=8))
    with pytest.raises(PlacementError, match="heads"):
        check_placement(qwen, GB200, Placement(tp=3))


def test_a_placement_that_does_not_fit_names_the_class_that_overflows() -> None:
    lone = setting_of(V3, HARDWARE["h100"], ENGINE, Placement())
    with pytest.raises(PlacementError, match="expert weights overflow h100's 86 GB") as caught:
        require_fit(lone, memory(lone, 1.0, 1024.0))
    assert caught.value.reason == "memory: expert weights"
    assert "the weights alone need 10 accelerators or more" in str(caught.value)
    full = setting_of(V3, HARDWARE["h200"], ENGINE, Placement(dp=32))
    with pytest.raises(PlacementError, match="KV overflow") as caught:
        require_fit(full, memory(full, 64.0, 100_000.0))
    assert "GB are left for KV and state" in str(caught.value)


@given(st.integers(1, 8), st.sampled_from([1, 2, 4, 8]), st.integers(1, 64), st.integers(1024, 160_000))
def test_at_a_full_pipe_the_cache_of_a_stage_does_not_shrink_with_depth(pp: int, tp: int, batch: int, ctx: int) -> None:
    deep, flat = (
        memory(setting_of(V3, GB200, ENGINE, Placement(pp=p, tp=tp)), float(batch), float(ctx)) for p in (pp, 1)
    )
    assert float(deep.kv) == pytest.approx(float(flat.kv))
    assert deep.experts == pytest.approx(flat.experts / pp)


def test_the_classes_sum_to_the_total_and_largest_batch_is_the_last_that_fits() -> None:
    setting = setting_of(K3, GB200, ENGINE, Placement(dp=64))
    need = memory(setting, 3.0, 50_000.0)
    assert sum(need.classes().values()) == pytest.approx(float(need.total))
    most = largest_batch(setting, 50_000.0)
    assert float(memory(setting, float(most), 50_000.0).total) <= GB200.hbm_bytes
    assert float(memory(setting, most + 1.0, 50_000.0).total) > GB200.hbm_bytes


def test_latent_cache_repeats_on_tensor_ranks_unless_sharded_and_grouped_cache_divides() -> None:
    assert kv_bytes_per_token(V3, V3.precision, Placement(tp=8)) == V3.kv_bytes_per_token()
    assert kv_bytes_per_token(V3, V3.precision, Placement(tp=8, context_parallel=8)) == V3.kv_bytes_per_token() / 8
    qwen = MODELS["qwen3-235b-a22b"]
    assert kv_bytes_per_token(qwen, qwen.precision, Placement(tp=8)) == qwen.kv_bytes_per_token() / 4
    assert state_bytes_per_sequence(K3, K3.precision, Placement(tp=8)) == K3.state_bytes_per_sequence() / 8


def test_the_essay_s_stage_of_four_to_five_hundred_gigabytes() -> None:
    # Essay, section 14: 2 M tokens at 70 kB, doubled, beside the weights of a stage and its working set.
    kv = 2e6 * V3.kv_bytes_per_token()
    assert kv == pytest.approx(140e9, rel=0.01)
    weights = sum(V3.weight_bytes().values()) / 4
    stage = weights + 2 * kv + 0.05 * 450e9
    assert 400e9 < stage < 500e9


def test_the_crossover_depth_of_the_pipeline() -> None:
    assert crossover_stages(sum(V3.weight_bytes().values()), 2e6 * V3.kv_bytes_per_token()) == pytest.approx(
        4.8, abs=0.1
    )
    # Released K3 keeps 27.6 kB a token: 56 GB instead of 140, and a crossover six times as deep; with the states of a
    # thousand live sequences (449 GB) it lies near 3.
    k3 = sum(K3.weight_bytes().values())
    live = 2e6 * K3.kv_bytes_per_token()
    assert live == pytest.approx(55.3e9, rel=0.01)
    assert crossover_stages(k3, live) == pytest.approx(28, abs=0.5)
    assert crossover_stages(k3, live + 1000 * K3.state_bytes_per_sequence()) == pytest.approx(3.1, abs=0.1)


def test_eight_s_inequality() -> None:
    assert fits_stage(192e9, 600e9, 4, 20e9, 10e9)
    assert not fits_stage(192e9, 600e9, 3, 0.0, 0.0)


def test_k3_as_released_cannot_lie_below_eighty_gigabytes_with_an_attention_instance_per_gpu() -> None:
    # Figure 28 of the essay (section 23) shows most points below ~80 GB; bf16 non-expert weights alone are 113 GB.
    place = Placement(dp=64)
    released = memory(setting_of(K3, GB200, ENGINE, place), 0.0, 0.0)
    eight = memory(setting_of(MODELS["kimi-k3-fp8dense"], GB200, ENGINE, place), 0.0, 0.0)
    assert released.weights == pytest.approx(136e9, rel=0.02)
    assert eight.weights == pytest.approx(80e9, rel=0.04)


def test_uneven_stages_are_paced_by_the_fullest() -> None:
    assert stage_excess_ratio(K3, 4) == pytest.approx(24 * 4 / 93)
    assert stage_excess_ratio(K3, 3) == 1.0


def test_every_enumerated_placement_has_its_accelerators_in_range() -> None:
    candidates = list(placements(K3, range(16, 65)))
    assert len(candidates) > 250
    assert all(p.gpus in range(16, 65) and p.tp <= 8 for p in candidates)
    assert len({p.label() for p in candidates}) == len(candidates)


def test_a_batch_array_gives_an_array_of_memory() -> None:
    need = memory(setting_of(K3, GB200, ENGINE, Placement(dp=64)), np.asarray([1.0, 2.0]), 1000.0)
    assert need.kv[1] == 2 * need.kv[0]


def test_weights_arrive_as_fast_as_their_path() -> None:
    # 97.5 GB of K3 per GPU on sixteen: a third of a second over C2C, seconds over a NIC.
    setting = setting_of(K3, GB200, ENGINE, Placement(pp=2, tp=8))
    weights = memory(setting, 0.0, 0.0).weights
    assert weights_load_s(setting, "host") == pytest.approx(weights / (450e9 * 0.8))
    assert 1.0 < weights_load_s(setting, "peer") < 5.0 < weights_load_s(setting, "storage")
    assert reconfigure_s(setting, None) < reconfigure_s(setting, "host")
    with pytest.raises(ValueError, match="path `tape` is unknown; known: host, peer, storage"):
        weights_load_s(setting, "tape")


@pytest.mark.parametrize("place", [Placement(dp=64), Placement(pp=2, tp=8, ep=8), Placement(pp=4, tp=2, dp=4)])
def test_the_capacity_in_positions_is_what_the_memory_law_leaves(place: Placement) -> None:
    setting, slots = setting_of(K3, GB200, ENGINE, place), 2 * place.dp * place.pp
    tokens = kv_capacity_tokens(setting, slots)
    batch = slots / place.dp / place.pp
    full = memory(setting, batch, tokens / slots)
    assert float(full.total) == pytest.approx(GB200.hbm_bytes, rel=1e-3)
