"""Models counted tensor by tensor against their checkpoints, and the essay's numbers that follow from them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from plant.model.expert_kernels import distinct_experts
from plant.model.huggingface import ConfigError, load_config, model_from_config
from plant.model.precision import Precision
from plant.presets.models import MODELS
from scenarios.plan.counts import count_rows


@pytest.mark.parametrize("name", MODELS)
def test_derived_totals_meet_the_checkpoints(name: str) -> None:
    model = MODELS[name]
    tolerance = 0.005 if model.exact_total else 0.03
    assert model.total_parameters == pytest.approx(model.published_total, rel=tolerance)
    assert model.count_source
    assert model.config_source


@pytest.mark.parametrize("name", MODELS)
def test_active_parameters_are_within_a_tenth_of_the_public_figure(name: str) -> None:
    assert MODELS[name].active_parameters == pytest.approx(MODELS[name].published_active, rel=0.10)


def test_the_table_of_counts_prints_both_readings_of_active() -> None:
    row = next(r for r in count_rows() if r["model"] == "deepseek-v3")
    assert row["active"] - row["active_without_head"] == 129_280 * 7168


def test_k3_as_released_weighs_what_its_shards_weigh() -> None:
    # 1,560,860,324,864 bytes of payload in the shard headers, the vision tower included.
    weight = sum(MODELS["kimi-k3"].weight_bytes().values())
    assert weight == pytest.approx(1_560_860_324_864, rel=0.002)


def test_compressed_attention_keeps_seventy_kilobytes_a_token() -> None:
    kv = MODELS["deepseek-v3"].kv_bytes_per_token()
    assert kv == 61 * 576 * 2 == 70_272
    assert 2e6 * kv == pytest.approx(140e9, rel=0.01)


def test_a_hybrid_keeps_about_twenty_five_kilobytes_a_token_and_a_state_that_the_essay_leaves_out() -> None:
    k3 = MODELS["kimi-k3"]
    assert k3.kv_bytes_per_token() == pytest.approx(27_648)
    state = k3.state_bytes_per_sequence()
    assert state == pytest.approx(449e6, rel=0.01)
    assert state / k3.kv_bytes_per_token() == pytest.approx(16_250, rel=0.01)  # tokens at which KV outgrows the state
    assert k3.state_bytes_per_sequence(replace(k3.precision, state_bytes=2.0)) == pytest.approx(232e6, rel=0.01)


def test_a_hundred_and_twenty_eight_tokens_make_a_thousand_and_twenty_four_assignments() -> None:
    model = MODELS["deepseek-v3"]
    assert 128 * model.experts_per_token == 1024
    assert model.experts == 256
    assert float(distinct_experts(256, 8, 128.0)) == pytest.approx(251.6, abs=0.1)  # essentially every expert


def test_there_are_about_fifteen_thousand_layer_experts_in_v3_and_five_times_that_in_k3() -> None:
    assert MODELS["deepseek-v3"].layer_experts == 14_848
    assert MODELS["kimi-k3"].layer_experts == 82_432


@pytest.mark.parametrize("name", MODELS)
def test_more_than_ninety_five_percent_of_the_weights_lie_in_routed_experts(name: str) -> None:
    assert MODELS[name].expert_share_ratio > 0.95


K3_TEXT = {
    "architectures": ["KimiLinearForCausalLM"],
    "first_k_dense_replace": 1,
    "hidden_size": 7168,
    "intermediate_size": 33_792,
    "kv_lora_rank": 512,
    "linear_attn_config": {
        "full_attn_layers": [*range(4, 93, 4), 93],
        "head_dim": 128,
        "kda_layers": [i for i in range(1, 93) if i % 4],
        "num_heads": 96,
        "short_conv_kernel_size": 4,
        "use_full_rank_gate": True,
    },
    "max_position_embeddings": 1_048_576,
    "mla_use_output_gate": True,
    "moe_intermediate_size": 3072,
    "num_attention_heads": 96,
    "num_experts": 896,
    "num_experts_per_token": 16,
    "num_shared_experts": 2,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "routed_expert_hidden_size": 3584,
    "v_head_dim": 128,
    "vocab_size": 163_840,
    "quantization_config": {"format": "mxfp4-pack-quantized"},
}
GPT_OSS = {
    "architectures": ["GptOssForCausalLM"],
    "experts_per_token": 4,
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "max_position_embeddings": 131_072,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "num_local_experts": 128,
    "sliding_window": 128,
    "vocab_size": 201_088,
    "quantization_config": {"quant_method": "mxfp4"},
}
QWEN35 = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "text_config": {
        "attn_output_gate": True,
        "full_attention_interval": 4,
        "head_dim": 256,
        "hidden_size": 4096,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 64,
        "linear_value_head_dim": 128,
        "max_position_embeddings": 262_144,
        "moe_intermediate_size": 1024,
        "num_attention_heads": 32,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "num_hidden_layers": 60,
        "num_key_value_heads": 2,
        "shared_expert_intermediate_size": 1024,
        "vocab_size": 248_320,
    },
}
V32 = {
    "architectures": ["DeepseekV32ForCausalLM"],
    "first_k_dense_replace": 3,
    "hidden_size": 7168,
    "index_head_dim": 128,
    "index_n_heads": 64,
    "index_topk": 2048,
    "intermediate_size": 18_432,
    "kv_lora_rank": 512,
    "max_position_embeddings": 163_840,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 61,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 129_280,
    "quantization_config": {"quant_method": "fp8"},
}


@pytest.mark.parametrize(
    ("config", "name"),
    [(K3_TEXT, "kimi-k3"), (GPT_OSS, "gpt-oss-120b"), (QWEN35, "qwen3.5-397b-a17b"), (V32, "deepseek-v3.2")],
)
def test_a_config_file_gives_the_preset_s_shapes(config: dict[str, object], name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    read, preset = load_config(tmp_path), MODELS[name]
    assert read.attention == preset.attention
    assert read.total_parameters == preset.total_parameters - preset.mtp_parameters
    assert read.active_parameters == preset.active_parameters


def test_the_quantisation_of_a_config_sets_the_formats() -> None:
    assert model_from_config(K3_TEXT, "k3").precision == MODELS["kimi-k3"].precision
    assert model_from_config(QWEN35, "q").precision == Precision(dense="bf16", experts="bf16", dispatch_bytes=2.0)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architectures": ["DeciLMForCausalLM"]}, "architecture DeciLMForCausalLM is not supported; supported: "),
        ({}, "architecture none given is not supported"),
        ({"architectures": ["GptOssForCausalLM"]}, "GptOssForCausalLM: key 'layer_types' is missing"),
        ({**V32, "quantization_config": {"quant_method": "gguf"}}, "quantization method 'gguf' is not supported"),
    ],
)
def test_a_config_that_cannot_be_read_says_what_would_be_right(config: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        model_from_config(config, "x")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_broken_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_config(tmp_path / "config.json")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="not JSON"):
        load_config(tmp_path)
