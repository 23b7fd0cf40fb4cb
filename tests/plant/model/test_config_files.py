"""Configurations of public checkpoints, dense and mixtures: totals as published, formats as shipped, nothing unread.

Shapes are facts of the `config.json` files on Hugging Face; totals are those of the model cards.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plant.model.attention import CompressedAttention, GroupedAttention, LatentAttention
from plant.model.huggingface import ConfigError, load_config, model_from_config
from plant.model.placement import Placement, PlacementError, check_placement, placements
from plant.model.precision import Precision
from plant.model.regimes import decode, setting_of
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE


def grouped(
    architecture: str, width: int, layers: int, heads: int, kv: int, vocabulary: int, **more: object
) -> dict[str, object]:
    return {"architectures": [architecture], "hidden_size": width, "num_hidden_layers": layers,
            "vocab_size": vocabulary, "num_attention_heads": heads, "num_key_value_heads": kv, **more}  # fmt: skip


QWEN_72B = grouped("Qwen2ForCausalLM", 8192, 80, 64, 8, 152_064, intermediate_size=29_568)
LLAMA_70B = grouped("LlamaForCausalLM", 8192, 80, 64, 8, 128_256, intermediate_size=28_672)
MIXTRAL = grouped("MixtralForCausalLM", 4096, 32, 32, 8, 32_000, intermediate_size=14_336, num_local_experts=8,
                  num_experts_per_tok=2)  # fmt: skip
MAVERICK = {
    "architectures": ["Llama4ForConditionalGeneration"],
    "text_config": grouped("", 5120, 48, 40, 8, 202_048, head_dim=128, intermediate_size=8192,
                           intermediate_size_mlp=16_384, interleave_moe_layer_step=2, num_local_experts=128,
                           num_experts_per_tok=1, attention_chunk_size=8192),
}  # fmt: skip
GEMMA_26B = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "tie_word_embeddings": True,
    "text_config": grouped("", 2816, 30, 16, 8, 262_144, head_dim=256, global_head_dim=512, num_experts=128,
                           num_global_key_value_heads=2, attention_k_eq_v=True, enable_moe_block=True,
                           intermediate_size=2112, moe_intermediate_size=704, top_k_experts=8, sliding_window=1024,
                           layer_types=(["sliding_attention"] * 5 + ["full_attention"]) * 5),
}  # fmt: skip
MIMO_V2 = grouped("MiMoV2FlashForCausalLM", 4096, 48, 64, 4, 152_576, head_dim=192, v_head_dim=128, sliding_window=128,
                  swa_num_attention_heads=64, swa_num_key_value_heads=8, swa_head_dim=192, swa_v_head_dim=128,
                  hybrid_layer_pattern=[0] + ([1] * 4 + [0] + [1]) * 7 + [1] * 4 + [0], moe_layer_freq=[0] + [1] * 47,
                  moe_intermediate_size=2048, intermediate_size=16_384, n_routed_experts=256,
                  num_experts_per_tok=8)  # fmt: skip
MINIMAX_M3 = grouped("MiniMaxM3ForCausalLM", 6144, 60, 64, 4, 200_064, head_dim=128, intermediate_size=3072,
                     dense_intermediate_size=12_288, shared_intermediate_size=3072, n_shared_experts=1,
                     num_local_experts=128, num_experts_per_tok=4, moe_layer_freq=[0] * 3 + [1] * 57,
                     sparse_attention_config={"sparse_attention_freq": [0] * 3 + [1] * 57, "sparse_block_size": 128,
                                              "sparse_index_dim": 128, "sparse_local_block": 1,
                                              "sparse_num_index_heads": 4, "sparse_topk_blocks": 16})  # fmt: skip
NEMOTRON_SUPER = grouped("NemotronHForCausalLM", 4096, 88, 32, 2, 131_072, head_dim=128, intermediate_size=2688,
                         hybrid_override_pattern="ME" * 40 + "*" * 8, mamba_num_heads=128, mamba_head_dim=64,
                         n_groups=8, ssm_state_size=128, conv_kernel=4, n_routed_experts=512, num_experts_per_tok=22,
                         moe_intermediate_size=2688, moe_latent_size=1024, n_shared_experts=1,
                         moe_shared_expert_intermediate_size=5376, mlp_hidden_act="relu2")  # fmt: skip
V4_FLASH = grouped("DeepseekV4ForCausalLM", 4096, 43, 64, 1, 129_280, head_dim=512, q_lora_rank=1024, o_lora_rank=1024,
                   o_groups=8, qk_rope_head_dim=64, sliding_window=128, index_n_heads=64, index_head_dim=128,
                   index_topk=512, compress_ratios=[0, 0] + [4, 128] * 20 + [4, 0], moe_intermediate_size=2048,
                   n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=6, expert_dtype="fp4",
                   quantization_config={"quant_method": "fp8", "fmt": "e4m3"})  # fmt: skip
STEP_37 = grouped("Step3p7FlashForCausalLM", 4096, 45, 64, 8, 128_896, head_dim=128, intermediate_size=11_264,
                  sliding_window=512,
                  layer_types=["full_attention", *["sliding_attention"] * 3] * 11 + ["full_attention"],
                  first_k_dense_replace=3, num_experts=288, num_experts_per_tok=8, moe_intermediate_size=1280,
                  share_expert_dim=1280, n_shared_experts=1)  # fmt: skip
V31 = {
    "architectures": ["DeepseekV3ForCausalLM"], "first_k_dense_replace": 3, "hidden_size": 7168,
    "intermediate_size": 18_432, "kv_lora_rank": 512, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_attention_heads": 128, "num_experts_per_tok": 8, "num_hidden_layers": 61,
    "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129_280,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "total", "active"),
    [
        (QWEN_72B, 72.7e9, 72.7e9),
        (LLAMA_70B, 70.55e9, 70.55e9),
        (MIXTRAL, 46.7e9, 12.9e9),
        (MAVERICK, 400e9, 17e9),
        (GEMMA_26B, 25.2e9, 3.8e9),
        (MIMO_V2, 309e9, 15e9),
        (NEMOTRON_SUPER, 120.6e9, 12.7e9),
        (V4_FLASH, 284e9, 13e9),
        (STEP_37, 196e9, 11e9),
    ],
    ids=["qwen", "llama", "mixtral", "maverick", "gemma", "mimo", "nemotron", "v4-flash", "step"],
)
def test_totals_are_those_of_the_model_cards(config: dict[str, object], total: float, active: float) -> None:
    model = model_from_config(config, "x")
    assert model.total_parameters == pytest.approx(total, rel=0.01)
    assert model.active_parameters == pytest.approx(active, rel=0.10)


def test_every_layer_of_a_dense_model_is_a_dense_one_and_ranks_of_data_are_refused() -> None:
    model = model_from_config(LLAMA_70B, "llama")
    assert (model.experts, model.moe_layers, model.dense_layers) == (0, 0, 80)
    assert all(place.dp == 1 and place.ep == 1 for place in placements(model, range(1, 9)))
    with pytest.raises(PlacementError, match="llama is dense, so its replicas share nothing"):
        check_placement(model, HARDWARE["h100"], Placement(dp=2))


def test_a_dense_72b_on_two_h100_takes_between_its_weights_stream_and_what_was_measured() -> None:
    # 145 GB / 2 / 3.35 TB/s = 22 ms; tenstorrent/tt-inference-server issue 143 measured 30.9 ms at one caller.
    setting = setting_of(
        model_from_config(QWEN_72B, "qwen"), HARDWARE["h100"], ENGINES["fused-2026h2"], Placement(tp=2, ep=1)
    )
    assert 0.022 < float(decode(setting, 1.0, 1024.0).tpot_s) < 0.0309


def test_the_window_the_block_and_the_compressed_cache_keep_what_they_say() -> None:
    mimo = model_from_config(MIMO_V2, "mimo").attention
    assert [(g.label, g.layers) for g in mimo] == [("GQA", 9), ("SWA", 39)]
    assert isinstance(mimo[0], GroupedAttention)
    assert mimo[0].kv_bytes_per_token(Precision()) == 4 * (192 + 128) * 2
    sparse = model_from_config(MINIMAX_M3, "m3").attention[1]
    assert isinstance(sparse, GroupedAttention)
    assert sparse.indexer is not None
    assert (sparse.layers, sparse.indexer.top_tokens) == (57, 17 * 128)
    v4 = model_from_config(V4_FLASH, "v4")
    assert [(g.label, g.layers) for g in v4.attention] == [("SWA", 2), ("CSA", 21), ("HCA", 20)]
    assert isinstance(v4.attention[2], CompressedAttention)
    assert v4.attention[2].kv_bytes_per_token(v4.precision) == 512 * 2 / 128
    assert v4.precision == Precision(dense="fp8", experts="mxfp4", dispatch_bytes=1.03125)


def test_layers_that_take_over_a_selection_have_no_indexer_of_their_own() -> None:
    kinds = ["full"] * 3 + ["shared", "shared", "full"] * 18 + ["shared"] * 4
    config = {**V31, "architectures": ["GlmMoeDsaForCausalLM"], "index_n_heads": 32, "index_head_dim": 128,
              "index_topk": 2048, "indexer_types": kinds}  # fmt: skip
    full, shared = model_from_config(config, "glm").attention
    assert isinstance(full, LatentAttention)
    assert (full.layers, shared.layers) == (21, 40)
    assert full.parameters(6144) - shared.parameters(6144) == 1536 * 32 * 128 + 6144 * (128 + 32) + 256
    assert full.kv_bytes_per_token(Precision()) - shared.kv_bytes_per_token(Precision()) == 132.0


def test_a_quantisation_that_stands_in_its_own_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(V31))
    assert sum(load_config(tmp_path).weight_bytes().values()) == pytest.approx(1342e9, rel=0.01)
    modules = [f"model.layers.{i}.self_attn.q_a_proj" for i in range(61)]
    quantization = {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head", *modules]}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps({"quantization": quantization}))
    read = load_config(tmp_path)
    assert read.precision == Precision(
        dense="nvfp4", attention="bf16", experts="nvfp4", kv_bytes=1.0, dispatch_bytes=0.5625
    )
    assert sum(read.weight_bytes().values()) == pytest.approx(397e9, rel=0.01)


def test_mixed_formats_are_read_by_class() -> None:
    layers = {f"layers.{i}.ffn.experts": {"quant_algo": "NVFP4"} for i in range(43)}
    quantization = {"quant_algo": "MIXED_PRECISION", "fmt": "e4m3", "quantized_layers": layers}
    read = model_from_config({**V4_FLASH, "quantization_config": quantization, "expert_dtype": "fp4"}, "x")
    assert (read.precision.experts, read.precision.dense, read.precision.attention) == ("nvfp4", "fp8", "fp8")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_memory_layers": 12}, "LlamaForCausalLM: key `num_memory_layers` is not known"),
        ({"cross_attention_dim": 512}, "key `cross_attention_dim` is not known"),
        ({"num_experts": 64}, "key 'num_experts_per_tok' is missing"),
        ({"num_hidden_layers": "many"}, "a value is not of its kind"),
    ],
)
def test_a_key_that_would_change_the_shape_is_refused_by_name(change: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        model_from_config({**LLAMA_70B, **change}, "x")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_keys_that_change_no_shape_are_passed_over() -> None:
    more = {"rope_theta": 5e5, "attention_dropout": 0.0, "initializer_range": 0.02,
            "num_memory_layers": 0, "pretraining_tp": 1, "use_cache": True, "rope_scaling": {"factor": 8.0},
            "eos_token_id": [1, 2]}  # fmt: skip
    assert model_from_config({**LLAMA_70B, **more}, "x") == model_from_config(LLAMA_70B, "x")


def test_a_list_of_layers_must_have_as_many_as_the_model() -> None:
    with pytest.raises(ConfigError, match="num_hidden_layers = 44, but its list of layers has 45"):
        model_from_config({**STEP_37, "num_hidden_layers": 44}, "x")


def test_a_model_is_named_after_its_folder_or_its_file(tmp_path: Path) -> None:
    folder = tmp_path / "Llama-70B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA_70B))
    (tmp_path / "dense72.json").write_text(json.dumps(QWEN_72B))
    assert load_config(folder).name == "Llama-70B"
    assert load_config(tmp_path / "dense72.json").name == "dense72"


@pytest.mark.parametrize("name", ["a100", "h20", "l40s", "mi300x", "mi355x", "tpu-v7", "trainium2", "trainium3"])
def test_hardware_from_data_sheets_alone_says_so(name: str) -> None:
    hardware = HARDWARE[name]
    assert not hardware.verified
    assert hardware.source
    assert list(hardware.flops_per_s) == sorted(hardware.flops_per_s)
