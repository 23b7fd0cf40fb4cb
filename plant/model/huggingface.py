"""Read a model from the `config.json` that Hugging Face ships with a checkpoint.

Only known architectures are read: a shape read under the wrong rules would give plausible numbers that are wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plant.model.attention import Attention, GroupedAttention, Indexer, LatentAttention, LinearAttention
from plant.model.moe import Model
from plant.model.precision import Precision

# JSON of an unknown checkpoint: any value may stand under any key until it is read.
Config = Mapping[str, Any]


class ConfigError(ValueError):
    """A configuration that cannot be read; the message is one line that says what would be right."""


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
        kv_heads=config["num_key_value_heads"],
        head_dim=config.get("head_dim") or config["hidden_size"] // heads,
        window=window,
        gate=gate,
    )


def _deepseek(config: Config) -> tuple[Attention, ...]:
    return (_latent(config, config["num_hidden_layers"]),)


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
    full = layers // config.get("full_attention_interval", 4)
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
    return (_grouped(config, config["num_hidden_layers"]),)


def _gpt_oss(config: Config) -> tuple[Attention, ...]:
    kinds = config["layer_types"]
    sliding = sum(kind == "sliding_attention" for kind in kinds)
    return _grouped(config, len(kinds) - sliding), _grouped(config, sliding, window=config["sliding_window"])


ARCHITECTURES: dict[str, Callable[[Config], tuple[Attention, ...]]] = {
    "DeepseekV3ForCausalLM": _deepseek,
    "DeepseekV32ForCausalLM": _deepseek,
    "GlmMoeDsaForCausalLM": _deepseek,
    "KimiLinearForCausalLM": _kimi_linear,
    "Qwen3MoeForCausalLM": _plain_grouped,
    "Glm4MoeForCausalLM": _plain_grouped,
    "MiniMaxM2ForCausalLM": _plain_grouped,
    "Qwen3NextForCausalLM": _qwen_hybrid,
    "Qwen3_5MoeForConditionalGeneration": _qwen_hybrid,
    "GptOssForCausalLM": _gpt_oss,
}


def _first(config: Config, *names: str, default: int | None = None) -> int:
    for name in names:
        if config.get(name) is not None:
            return int(config[name])
    if default is None:
        raise KeyError(names[0])
    return default


def _precision(config: Config) -> Precision:
    quantization = config.get("quantization_config") or {}
    method = json.dumps(quantization).lower()
    ignored = json.dumps(quantization.get("ignore") or quantization.get("modules_to_not_convert") or []).lower()
    if not quantization:
        return Precision(dense="bf16", experts="bf16", dispatch_bytes=2.0)
    if "mxfp4" in method:
        return Precision(dense="bf16", experts="mxfp4", dispatch_bytes=1.03125)
    if "nvfp4" in method:
        attention = "bf16" if "attn" in ignored else "nvfp4"
        return Precision(dense="nvfp4", attention=attention, experts="nvfp4", kv_bytes=1.0, dispatch_bytes=0.5625)
    if "fp8" in method:
        return Precision()
    if '"num_bits": 4' in method or "int4" in method:
        return Precision(dense="bf16", experts="int4", dispatch_bytes=2.0)
    raise ConfigError(
        f"quantization method {quantization.get('quant_method')!r} is not supported; fp8, nvfp4, mxfp4, int4 are"
    )


def model_from_config(config: Config, name: str) -> Model:
    """Return the model that a parsed `config.json` describes.

    Raises
    ------
    ConfigError
        For an architecture that is not supported, a model without routed experts, or a missing key.
    """
    outer = config
    text = config.get("text_config") or config
    named = [*(text.get("architectures") or []), *(outer.get("architectures") or [])]
    known = next((a for a in named if a in ARCHITECTURES), None)
    if known is None:
        shown = named[0] if named else "none given"
        raise ConfigError(f"architecture {shown} is not supported; supported: {', '.join(sorted(ARCHITECTURES))}")
    try:
        attention = ARCHITECTURES[known](text)
        experts = _first(text, "n_routed_experts", "num_experts", "num_local_experts")
        inner = _first(text, "moe_intermediate_size", "intermediate_size")
        shared = _first(text, "n_shared_experts", "num_shared_experts", default=0)
        shared_inner = inner
        if text.get("shared_expert_intermediate_size"):
            shared, shared_inner = 1, int(text["shared_expert_intermediate_size"])
        return Model(
            name=name,
            width=int(text["hidden_size"]),
            attention=attention,
            experts=experts,
            experts_per_token=_first(text, "num_experts_per_tok", "num_experts_per_token", "experts_per_token"),
            expert_ffn=inner,
            shared_experts=shared,
            shared_ffn=shared_inner if shared else 0,
            dense_layers=_first(text, "first_k_dense_replace", default=0),
            dense_ffn=_first(text, "intermediate_size", default=0),
            expert_width=_first(text, "routed_expert_hidden_size", default=0),
            vocabulary=int(text["vocab_size"]),
            context_tokens=_first(text, "max_position_embeddings", "model_max_length", default=131_072),
            expert_bias=known == "GptOssForCausalLM",
            precision=_precision(text if text.get("quantization_config") else outer),
            config_source=name,
        )
    except KeyError as missing:
        raise ConfigError(f"{known}: key {missing} is missing") from missing


def load_config(path: Path) -> Model:
    """Read `config.json` at `path` (the file, or the folder that holds it).

    Raises
    ------
    ConfigError
        When it is not there, not JSON, or not supported.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigError(f"{file}: {problem.strerror or problem}") from problem
    except ValueError as problem:
        raise ConfigError(f"{file}: not JSON: {problem}") from problem
    if not isinstance(config, dict):
        raise ConfigError(f"{file}: a JSON object was expected")
    return model_from_config(config, file.resolve().parent.name or file.stem)
