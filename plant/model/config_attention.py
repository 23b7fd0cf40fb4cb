"""Attention groups of a model from its `config.json`, by architecture.

Only known architectures are read: a shape read under the wrong rules would give plausible numbers that are wrong.
Rules: the modelling code that each checkpoint names in its `architectures` (Hugging Face transformers, or the
checkpoint's own), as read in July to September 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from plant.model.attention import (
    Attention,
    CompressedAttention,
    GroupedAttention,
    Indexer,
    LatentAttention,
    LinearAttention,
)

# JSON of an unknown checkpoint: any value may stand under any key until it is read.
Config = Mapping[str, Any]


def _latent(config: Config, layers: int, *, gate: bool = False) -> LatentAttention:
    indexer = None
    if "index_topk" in config:
        indexer = Indexer(
            heads=config["index_n_heads"], head_dim=config["index_head_dim"], top_tokens=config["index_topk"]
        )
    return LatentAttention(
        layers=layers,
        heads=config["num_attention_heads"],
        q_rank=config.get("q_lora_rank") or 0,
        kv_rank=config["kv_lora_rank"],
        rope_dim=config["qk_rope_head_dim"],
        nope_dim=config["qk_nope_head_dim"],
        value_dim=config["v_head_dim"],
        gate=gate,
        indexer=indexer,
    )


def _grouped(config: Config, layers: int, *, window: int = 0, gate: bool = False) -> GroupedAttention:
    heads = config["num_attention_heads"]
    return GroupedAttention(
        layers=layers,
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or config["hidden_size"] // heads,
        window=window,
        gate=gate,
    )


def _present(*groups: Attention) -> tuple[Attention, ...]:
    return tuple(group for group in groups if group.layers)


def _deepseek(config: Config) -> tuple[Attention, ...]:
    """With `indexer_types` some layers take over the selection of the layer before (GLM-5.2)."""
    kinds = config.get("indexer_types")
    if not kinds or "index_topk" not in config:
        return (_latent(config, config["num_hidden_layers"]),)
    full = _latent(config, sum(kind == "full" for kind in kinds))
    assert full.indexer is not None
    return _present(full, replace(full, layers=len(kinds) - full.layers, indexer=replace(full.indexer, shared=True)))


def _deepseek_v4(config: Config) -> tuple[Attention, ...]:
    """Per layer a ratio of compression: 0 sees a window alone, 4 selects with an indexer, 128 is dense."""
    ratios = list(config["compress_ratios"])[: config["num_hidden_layers"]]
    groups = []
    for ratio in sorted(set(ratios)):
        indexer = None
        if 1 < ratio < 64:
            indexer = Indexer(
                heads=config["index_n_heads"], head_dim=config["index_head_dim"], top_tokens=config["index_topk"]
            )
        groups.append(
            CompressedAttention(
                layers=ratios.count(ratio),
                heads=config["num_attention_heads"],
                head_dim=config["head_dim"],
                q_rank=config["q_lora_rank"],
                out_groups=config["o_groups"],
                out_rank=config["o_lora_rank"],
                ratio=ratio,
                window=config["sliding_window"],
                indexer=indexer,
            )
        )
    return tuple(groups)


def _kimi_linear(config: Config) -> tuple[Attention, ...]:
    linear = config["linear_attn_config"]
    rank = 0 if linear.get("use_full_rank_gate") else linear["head_dim"]
    return (
        _latent(config, len(linear["full_attn_layers"]), gate=bool(config.get("mla_use_output_gate"))),
        LinearAttention(
            layers=len(linear["kda_layers"]),
            heads=linear["num_heads"],
            key_heads=linear["num_heads"],
            key_dim=linear["head_dim"],
            value_dim=linear["head_dim"],
            conv=linear["short_conv_kernel_size"],
            gate_rank=rank,
            decay_rank=linear["head_dim"],
        ),
    )


def _qwen_hybrid(config: Config) -> tuple[Attention, ...]:
    layers = config["num_hidden_layers"]
    kinds = config.get("layer_types")
    full = (
        sum(kind == "full_attention" for kind in kinds) if kinds else layers // config.get("full_attention_interval", 4)
    )
    return (
        _grouped(config, full, gate=bool(config.get("attn_output_gate", True))),
        LinearAttention(
            layers=layers - full,
            heads=config["linear_num_value_heads"],
            key_heads=config["linear_num_key_heads"],
            key_dim=config["linear_key_head_dim"],
            value_dim=config["linear_value_head_dim"],
            conv=config["linear_conv_kernel_dim"],
        ),
    )


def _plain_grouped(config: Config) -> tuple[Attention, ...]:
    """Every layer sees the whole context, unless the file says which layers slide."""
    layers = config["num_hidden_layers"]
    window = config.get("sliding_window") if config.get("use_sliding_window", True) else None
    if window and config.get("layer_types"):
        return _sliding(config)
    if window and window < config.get("max_position_embeddings", window):
        # Mistral's first models slide everywhere; Qwen2's slide from `max_window_layers` on.
        full = min(config.get("max_window_layers", 0), layers)
        return _present(_grouped(config, full), _grouped(config, layers - full, window=window))
    return (_grouped(config, layers),)


def _sliding(config: Config) -> tuple[Attention, ...]:
    kinds = config["layer_types"]
    sliding = sum(kind == "sliding_attention" for kind in kinds)
    return _present(_grouped(config, len(kinds) - sliding), _grouped(config, sliding, window=config["sliding_window"]))


def _llama4(config: Config) -> tuple[Attention, ...]:
    """Three of four layers attend within chunks, which is priced as a window; the fourth sees everything."""
    layers = config["num_hidden_layers"]
    full = layers // 4
    return (_grouped(config, full), _grouped(config, layers - full, window=config["attention_chunk_size"]))


def _gemma4(config: Config) -> tuple[Attention, ...]:
    """Global layers have heads of their own width and no value projection (`attention_k_eq_v`)."""
    full, sliding = _sliding(config)
    assert isinstance(full, GroupedAttention)
    return (
        replace(
            full,
            kv_heads=config.get("num_global_key_value_heads") or full.kv_heads,
            head_dim=config.get("global_head_dim") or full.head_dim,
            shared_kv=bool(config.get("attention_k_eq_v")),
        ),
        sliding,
    )


def _mimo_v2(config: Config) -> tuple[Attention, ...]:
    slides = list(config["hybrid_layer_pattern"])
    full = replace(_grouped(config, slides.count(0)), value_dim=config["v_head_dim"])
    sliding = GroupedAttention(
        layers=slides.count(1),
        heads=config["swa_num_attention_heads"],
        kv_heads=config["swa_num_key_value_heads"],
        head_dim=config["swa_head_dim"],
        value_dim=config["swa_v_head_dim"],
        window=config["sliding_window"],
    )
    return _present(full, sliding)


def _minimax_m3(config: Config) -> tuple[Attention, ...]:
    """Sparse layers select blocks of positions by scores of a few narrow index heads."""
    sparse = config["sparse_attention_config"]
    flags = list(sparse["sparse_attention_freq"])
    indexer = Indexer(
        heads=sparse["sparse_num_index_heads"],
        head_dim=sparse["sparse_index_dim"],
        top_tokens=(sparse["sparse_topk_blocks"] + sparse["sparse_local_block"]) * sparse["sparse_block_size"],
    )
    return _present(_grouped(config, flags.count(0)), replace(_grouped(config, flags.count(1)), indexer=indexer))


def _nemotron_h(config: Config) -> tuple[Attention, ...]:
    """A pattern of mixers, one a layer: M is Mamba-2, * attention; E and - are feed-forward layers of their own."""
    pattern = layer_pattern(config)
    attention = _grouped(config, pattern.count("*"))
    if not config.get("head_dim"):
        attention = replace(attention, head_dim=config["attention_head_dim"])
    mamba = LinearAttention(
        layers=pattern.count("M"),
        heads=config["mamba_num_heads"],
        key_heads=config["n_groups"],
        key_dim=config["ssm_state_size"],
        value_dim=config["mamba_head_dim"],
        conv=config["conv_kernel"],
        kind="Mamba",
    )
    return _present(attention, mamba)


def layer_pattern(config: Config) -> str:
    """Return the layers of a Nemotron-H as letters, however the file lists them; empty for other models."""
    letters = {"mamba": "M", "attention": "*", "moe": "E", "mlp": "-"}
    if config.get("layers_block_type"):
        return "".join(letters[kind] for kind in config["layers_block_type"])
    if "mamba_num_heads" in config:
        return str(config["hybrid_override_pattern"])
    return ""


ARCHITECTURES: dict[str, Callable[[Config], tuple[Attention, ...]]] = {
    **dict.fromkeys(("DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "GlmMoeDsaForCausalLM"), _deepseek),
    **dict.fromkeys(
        (
            *("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "MiMoForCausalLM"),
            *("Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration", "Qwen3MoeForCausalLM"),
            *("MixtralForCausalLM", "Glm4MoeForCausalLM", "MiniMaxM2ForCausalLM"),
        ),
        _plain_grouped,
    ),
    **dict.fromkeys(
        ("Qwen3NextForCausalLM", "Qwen3_5MoeForConditionalGeneration", "Qwen3_5ForConditionalGeneration"), _qwen_hybrid
    ),
    **dict.fromkeys(("GptOssForCausalLM", "Step3p7FlashForCausalLM"), _sliding),
    **dict.fromkeys(("MiniMaxM3ForCausalLM", "MiniMaxM3SparseForCausalLM"), _minimax_m3),
    "DeepseekV4ForCausalLM": _deepseek_v4,
    "Gemma4ForConditionalGeneration": _gemma4,
    "KimiLinearForCausalLM": _kimi_linear,
    "Llama4ForConditionalGeneration": _llama4,
    "MiMoV2FlashForCausalLM": _mimo_v2,
    "NemotronHForCausalLM": _nemotron_h,
}
