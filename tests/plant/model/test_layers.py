"""Laws of the layer model: what must hold whatever the constants are, and the essay's timing statements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.model.attention_ffn import SramPool
from plant.model.energy import pass_energy
from plant.model.expert_kernels import distinct_experts
from plant.model.kernels import Machine, gemm, soft2, soft4
from plant.model.layer import Setting
from plant.model.network import all_reduce, dispatch_combine
from plant.model.placement import Placement
from plant.model.precision import FORMATS
from plant.model.regimes import decode, fill, midfill_intrusion, run_pass, setting_of
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS

GB200 = HARDWARE["gb200-nvl72"]
FUSED = ENGINES["fused-2026h2"]


def at(model: str = "kimi-k3", hardware: str = "gb200-nvl72", engine: str = "fused-2026h2", **widths: int) -> Setting:
    return setting_of(MODELS[model], HARDWARE[hardware], ENGINES[engine], Placement(**widths))


@given(st.floats(1e-9, 1.0), st.floats(1e-9, 1.0))
def test_a_soft_roofline_lies_between_the_larger_side_and_the_sum(a: float, b: float) -> None:
    for soft in (soft2, soft4):
        value = float(soft(np.asarray(a), np.asarray(b)))
        assert max(a, b) * (1 - 1e-12) <= value <= (a + b) * (1 + 1e-12)


@pytest.mark.parametrize("hardware", HARDWARE.values(), ids=lambda h: h.name)
@pytest.mark.parametrize("fmt", FORMATS.values(), ids=lambda f: f.name)
def test_no_product_beats_the_data_sheet(hardware: object, fmt: object) -> None:
    machine = Machine.of(hardware, FUSED)  # type: ignore[arg-type]  # parametrised values are objects to mypy
    for tokens in (1.0, 64.0, 8192.0):
        cost = gemm(machine, np.asarray(tokens), 7168, 7168, fmt)  # type: ignore[arg-type]
        assert float(cost.flops) / float(cost.seconds) < max(machine.hardware.flops_per_s)
        assert float(cost.hbm_bytes) / float(cost.seconds) < machine.hardware.hbm_bytes_per_s


def test_a_chip_without_four_bit_units_multiplies_four_bit_weights_in_bf16() -> None:
    assert [HARDWARE["h200"].peak(FORMATS[f]) for f in ("bf16", "fp8", "nvfp4", "mxfp4", "int4")] == [0, 1, 0, 0, 0]
    assert [GB200.peak(FORMATS[f]) for f in ("bf16", "fp8", "nvfp4", "mxfp4", "int4")] == [0, 1, 2, 1, 0]


@given(st.integers(1, 4096), st.sampled_from(list(MODELS)))
def test_active_experts_are_at_least_k_and_at_most_all(tokens: int, name: str) -> None:
    m = MODELS[name]
    active = float(distinct_experts(m.experts, m.experts_per_token, np.asarray(float(tokens))))
    assert m.experts_per_token * (1 - 1e-9) <= active <= min(m.experts, tokens * m.experts_per_token) * (1 + 1e-9)


def test_active_experts_agree_with_a_draw_of_routes() -> None:
    rng = np.random.default_rng(3)
    drawn = [len({int(e) for _ in range(64) for e in rng.choice(256, 8, replace=False)}) for _ in range(60)]
    assert float(distinct_experts(256, 8, np.asarray(64.0))) == pytest.approx(np.mean(drawn), rel=0.02)


def test_skew_wakes_fewer_experts_and_spreads_to_the_same_total() -> None:
    n = np.asarray([1.0, 16.0, 256.0, 4096.0])
    even, uneven = distinct_experts(256, 8, n), distinct_experts(256, 8, n, skew=1.0)
    assert (uneven <= even * 1.001).all()
    assert uneven[0] == pytest.approx(8.0, rel=0.01)


def test_sharing_grows_gradually_with_the_tokens_of_a_pass() -> None:
    for name, expected in (("kimi-k3", (1.00, 1.06, 1.67, 4.6)), ("deepseek-v3", (1.00, 1.11, 2.3, 8.0))):
        m = MODELS[name]
        for n, want in zip((1, 8, 64, 256), expected):
            active = float(distinct_experts(m.experts, m.experts_per_token, np.asarray(float(n))))
            assert n * m.experts_per_token / active == pytest.approx(want, rel=0.02)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("widths", [{}, {"tp": 4}, {"dp": 8}, {"pp": 2, "tp": 2}], ids=str)
def test_time_grows_with_batch_and_with_context(model: str, widths: dict[str, int]) -> None:
    setting = at(model, **widths)
    batch, context = np.geomspace(1, 512, 12), np.geomspace(512, 100_000, 12)
    assert (np.diff(decode(setting, batch, 8192.0).tpot_s) > 0).all()
    assert (np.diff(decode(setting, 16.0, context).tpot_s) >= -1e-12).all()
    assert (np.diff(fill(setting, context, 0.0).ttft_s) > -1e-9).all()


@settings(max_examples=25)
@given(st.sampled_from(list(MODELS)), st.integers(1, 256), st.integers(16, 100_000), st.sampled_from([1, 2, 4]))
def test_the_parts_of_a_pass_sum_to_its_seconds(model: str, batch: int, context: int, pp: int) -> None:
    setting = at(model, pp=pp, dp=4)
    step = run_pass(setting, batch, 1.0, context, fill=False)
    named = float(step.attention_s + step.experts_s + step.network_s)
    assert 0 < named < float(step.seconds)
    longer = run_pass(setting, batch, 1.0, context, fill=False)
    assert float(longer.seconds) == float(step.seconds)


def test_points_of_an_array_equal_points_alone() -> None:
    setting = at("glm-5", tp=8)
    together = decode(setting, [1.0, 32.0], [4096.0, 65_536.0]).tpot_s
    for i, (b, c) in enumerate(((1.0, 4096.0), (32.0, 65_536.0))):
        assert float(decode(setting, b, c).tpot_s) == pytest.approx(float(together[i]), rel=1e-12)


def test_batching_leaves_the_intensity_of_attention_alone_and_raises_that_of_experts() -> None:
    from plant.model.regimes import operations

    setting = at("qwen3-235b-a22b", dp=8)

    def ratio(batch: int, name: str) -> float:
        op = next(o for o in operations(setting, batch, 1, 16_384, fill=False) if o.name == name)
        return float(op.cost.flops / op.cost.hbm_bytes)

    assert ratio(64, "GQA core") == pytest.approx(ratio(1, "GQA core"), rel=1e-9)
    assert ratio(64, "routed experts") > 10 * ratio(1, "routed experts")


def test_midfill_of_a_compressed_model_is_bound_by_products_not_by_reading_its_cache() -> None:
    from plant.model.regimes import operations

    op = next(o for o in operations(at("deepseek-v3", tp=4), 1, 1024, 127_000, fill=True) if o.name == "MLA core")
    reading = float(op.cost.hbm_bytes) / GB200.hbm_bytes_per_s
    assert float(op.cost.seconds) > 20 * reading
    assert 1e3 < float(op.cost.flops / op.cost.hbm_bytes) < 1e5  # "thousands of ops per byte" (essay, section 3.2)


def test_a_layer_takes_fifty_microseconds_to_a_millisecond() -> None:
    # Essay, section 22: 50 us to 1 ms a layer over 60 layers is 15 to 300 tokens per second.
    rates = [1 / (60 * layer_s) for layer_s in (50e-6, 1e-3)]
    assert rates == pytest.approx([300, 15], rel=0.12)
    for batch in (1.0, 64.0, 256.0):
        step = float(decode(at("deepseek-v3", dp=32, engine="kernel-tables"), batch, 8192.0).tpot_s)
        assert 50e-6 < step / 61 < 1e-3


def test_every_pipeline_stage_adds_a_hand_off_and_a_full_pipe_keeps_its_throughput() -> None:
    single, four = (decode(at("deepseek-v3", pp=pp, tp=8), 8.0, 8192.0) for pp in (1, 4))
    assert 0 < float(four.step.seconds - single.step.seconds) < 100e-6
    assert float(four.tokens_per_s_per_gpu) == pytest.approx(float(single.tokens_per_s_per_gpu), rel=0.06)


def test_a_midfill_in_a_live_decode_pipeline_leaves_the_other_stages_idle() -> None:
    setting = at("kimi-k3", pp=4, tp=4)
    block = float(fill(setting, 1024.0, 127_000.0).step.seconds)
    step = float(decode(setting, 8.0, 127_000.0).step.seconds)
    gap = midfill_intrusion(block, step, 4, period_s=1.0)
    assert gap.stage_fill_s > 2 * gap.stage_decode_s  # longer than decode (essay, section 6)
    assert gap.lost_ratio == pytest.approx(3 * (gap.stage_fill_s - gap.stage_decode_s))
    assert midfill_intrusion(step, step, 4, period_s=1.0).lost_ratio == 0.0


def test_the_three_network_levels_are_told_apart() -> None:
    b200, machine = HARDWARE["b200"], Machine.of(HARDWARE["b200"], FUSED)
    assert [b200.level(n) for n in (8, 9, 64, 65)] == ["scale_up", "backbone", "backbone", "scale_out"]
    assert GB200.level(72) == "scale_up"
    times = [float(all_reduce(machine, np.asarray(1e6), n).seconds) for n in (8, 16)]
    assert times[1] > 2 * times[0]
    with_backbone = replace(b200, backbone_bytes_per_s=200e9)
    assert with_backbone.bytes_per_s(64) == 200e9
    assert with_backbone.bytes_per_s(128) == with_backbone.nic_bytes_per_s


def test_a_token_visits_each_remote_rank_once_inside_the_domain_and_each_island_once_across() -> None:
    machine = Machine.of(HARDWARE["b200"], FUSED)
    n = np.asarray(1000.0)
    common = {"width": 7168, "per_token": 8, "dispatch_bytes": 1.0}
    out, back = dispatch_combine(machine, Placement(dp=8, hot_ratio=1.0), fill=True, tokens=n, **common)
    distinct_remote = 8 * (1 - (7 / 8) ** 8) * 7 / 8
    assert float(out.link_bytes) == pytest.approx(1000 * 7168 * distinct_remote)
    assert float(back.link_bytes) == pytest.approx(2 * float(out.link_bytes))
    fewer, _ = dispatch_combine(machine, Placement(dp=64, hot_ratio=1.0), fill=True, tokens=n, **common)
    each, _ = dispatch_combine(machine, Placement(dp=64, hot_ratio=1.0), fill=False, tokens=n, **common)
    assert float(fewer.link_bytes) < float(each.link_bytes)
    nothing, _ = dispatch_combine(machine, Placement(tp=8), fill=True, tokens=n, **common)
    assert float(nothing.seconds) == 0.0


def test_two_batch_overlap_hides_transfers_but_never_more_than_there_are() -> None:
    wide = ENGINES["wide-ep-2025"]
    plain = replace(wide, two_batch_overlap=False)
    place = Placement(dp=64)
    for b in (64.0, 256.0):
        hidden, summed = (
            float(decode(setting_of(MODELS["deepseek-v3"], HARDWARE["h800"], e, place), b, 4096.0).tpot_s)
            for e in (wide, plain)
        )
        network = float(
            run_pass(
                setting_of(MODELS["deepseek-v3"], HARDWARE["h800"], plain, place), b, 1.0, 4096.0, fill=False
            ).network_s
        )
        assert hidden > summed - network


def test_speculation_pays_for_its_rows_and_divides_by_what_is_accepted() -> None:
    setting = at("kimi-k3", "b300", tp=8)
    alone = float(decode(setting, 1.0, 8192.0).tpot_s)
    spec = float(decode(setting, 1.0, 8192.0, draft_tokens=7, accepted_tokens=3.84).tpot_s)
    useless = float(decode(setting, 1.0, 8192.0, draft_tokens=7, accepted_tokens=1.0).tpot_s)
    assert spec < 0.5 * alone < alone < useless
    assert spec == pytest.approx(useless / 3.84)


def test_context_parallelism_shards_the_cache_of_latent_attention() -> None:
    unsharded = run_pass(at("deepseek-v3", tp=8), 16.0, 1.0, 100_000.0, fill=False)
    cut = run_pass(at("deepseek-v3", tp=8, context_parallel=8), 16.0, 1.0, 100_000.0, fill=False)
    assert float(cut.hbm_bytes) < float(unsharded.hbm_bytes)


def test_all_in_energy_exceeds_dynamic_energy_and_stays_below_full_power() -> None:
    for b in (1.0, 64.0):
        setting = at("kimi-k3", dp=64)
        step = decode(setting, b, 32_768.0).step
        spent = pass_energy(setting, step)
        assert float(spent.all_in_j) > float(spent.dynamic_j) > 0
        assert float(spent.watts) <= GB200.tdp_w
        most = GB200.all_in_w * float(step.seconds) * 64
        assert float(spent.all_in_j) <= most * (1 + 1e-12)


def test_products_are_priced_at_their_own_formats() -> None:
    # K3 as released multiplies attention in bf16 and routed experts in fp8: six tenths of a prefill are bf16.
    step = fill(at("kimi-k3", pp=4, tp=4), 8192.0).step
    per_flop = float(step.math_j / step.flops)
    assert (per_flop - 0.30e-12) / 0.25e-12 == pytest.approx(0.6, abs=0.04)
    narrow = fill(at("kimi-k3-fp8dense", pp=4, tp=4), 8192.0).step
    assert float(narrow.math_j) < 0.8 * float(step.math_j)


@pytest.mark.parametrize(("hardware", "engine"), [("h100", "vllm-2026h1"), ("b200", "vllm-2026h1")])
def test_watts_under_load_are_about_three_quarters_of_the_limit_as_measured(hardware: str, engine: str) -> None:
    # ML.ENERGY v3: 0.74 of TDP on average over its rows; static shares 0.64 (H100) and 0.53 (B200).
    chip = HARDWARE[hardware]
    ratios = []
    for name, tp in (("qwen3-235b-a22b", 8), ("gpt-oss-120b", 2), ("deepseek-v3", 8)):
        setting = setting_of(MODELS[name], chip, ENGINES[engine], Placement(tp=tp))
        step = decode(setting, np.asarray([8.0, 32.0, 64.0, 128.0]), 2048.0).step
        ratios += (pass_energy(setting, step).watts / chip.tdp_w).tolist()
    assert min(ratios) > chip.static_power_ratio
    assert np.mean(ratios) == pytest.approx(0.74, abs=0.06)


def test_the_ideal_products_of_a_prefill_bound_its_energy_from_below() -> None:
    # 104 G active parameters x 2 x 8,192 tokens at the cheapest rate.
    setting = at("kimi-k3", pp=4, tp=2)
    step = fill(setting, 8192.0).step
    assert float(pass_energy(setting, step, 4).dynamic_j) > 2 * 103e9 * 8192 * 0.17e-12


def test_experts_in_sram_need_thousands_of_chips_and_free_the_accelerators() -> None:
    from plant.model.memory import memory

    k3 = MODELS["kimi-k3"]
    bank = k3.weight_bytes()["experts"]
    assert 6000 < SramPool().chips(bank) < 8000  # "you need a huge number of accelerators" (essay, section 3.4)
    here, apart = (setting_of(k3, GB200, FUSED, Placement(tp=1, dp=16, remote_experts=r)) for r in (False, True))
    assert memory(here, 1.0, 8192.0).experts > 50e9
    assert memory(apart, 1.0, 8192.0).experts == 0.0
    # A lone token gains, since no weight is streamed; a large batch pays the network instead.
    assert float(decode(apart, 1.0, 8192.0).tpot_s) < float(decode(here, 1.0, 8192.0).tpot_s)
    sent = [float(run_pass(apart, b, 1.0, 8192.0, fill=False).link_bytes["scale_out"]) for b in (1.0, 100.0)]
    assert sent[1] == pytest.approx(100 * sent[0])
