"""Read a model from the `config.json` that Hugging Face ships with a checkpoint, dense or a mixture of experts.

Keys that set a shape and that nothing here reads are refused by name: left out, they would give plausible numbers
that are wrong.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from plant.model.config_attention import ARCHITECTURES, Config, layer_pattern
from plant.model.config_precision import UnknownFormat, precision_of
from plant.model.moe import Model


class ConfigError(ValueError):
    """A configuration that cannot be read; the message is one line that says what would be right."""


# Names that speak of a shape. Of these, what follows changes no weight, no byte of KV and no product.
_STRUCTURAL = re.compile(
    r"head|layer|expert|moe|hidden_size|intermediate|window|_dim|_rank|block|pattern|group|conv|state|topk|top_k|"
    r"latent|chunk|ratio|compress|index|sparse|linear|attn|attention|width|kv"
)
_NO_SHAPE = re.compile(
    r"dropout|bias|norm|eps$|rope|rotary|_freq$|_token|router|scoring|routing|init|scale|scaling|_clip|softcap|dtype|"
    r"implementation|aux_loss|alpha|version|offset|cache|mtp|nextn|prediction|residual|kernels|vision|image|"
    r"audio|video|hash|overlap|activation|shared_attention|_step_|bidirectional|_type$|_method$|projection|processor|"
    r"quant|sink|act$|interleave$|gradient|deterministic|loss"
)
# Read by other rules, or restating what is read: the width of a head that its parts add up to, groups of a router.
_RESTATED = {
    *("qk_head_dim", "n_group", "topk_group", "num_expert_group", "num_experts_group", "max_window_layers", "hc_mult"),
    *("chunk_size", "expand", "num_kv_shared_layers", "ep_size", "mlp_layer_types", "layer_types", "layers_block_type"),
    *("use_sliding_window", "sliding_window", "sliding_window_size", "attention_chunk_size", "no_rope_layers"),
    *("moe_layers", "attn_type_list", "attention_other_setting", "use_double_wide_mlp", "num_logits_to_keep"),
    *("vocab_size_per_layer_input", "index_topk_pattern", "index_share_for_mtp_iteration", "swa_num_attention_heads"),
    *(
        "intermediate_size",
        "dense_intermediate_size",
        "num_key_value_heads",
        "head_dim",
        "v_head_dim",
        "norm_topk_prob",
    ),
    *("time_step_rank", "attn_output_gate", "attention_output_gate", "decoder_sparse_step", "full_attention_interval"),
    *(
        "rescale_prenorm_residual",
        "moe_layer_freq",
        "top_k",
        "num_return_sequences",
        "attn_res_block_size",
        "num_image_tokens",
        "pad_token_id",
        "hybrid_layer_ids",
    ),
    *("compress_rope_theta", "o_groups", "experts_per_token", "num_experts_per_tok", "attention_value_scale"),
}


class _Recorded(dict[str, Any]):
    """A configuration that remembers which of its keys were asked for."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.asked: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.asked.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.asked.add(key)
        return super().get(key, default)


def _unread(config: _Recorded) -> list[str]:
    """Return keys that would set a shape and were not asked for; a value that switches something off sets none."""
    return [
        key
        for key, value in config.items()
        if key not in config.asked
        and key not in _RESTATED
        and value not in (None, False, 0, 1, [], {})
        and isinstance(value, int | float | list | dict | bool)
        and _STRUCTURAL.search(key)
        and not _NO_SHAPE.search(key)
    ]


def _first(config: Config, *names: str, default: int | None = None) -> int:
    given = [config.get(name) for name in names]  # all are asked for: some files state one shape twice
    value = next((number for number in given if number is not None), default)
    if value is None:
        raise KeyError(names[0])
    return int(value)


def _feed_forward(config: Config, layers: int) -> dict[str, int]:
    """Return the fields of `Model` that describe feed-forward layers: dense ones, routed and shared experts."""
    pattern = layer_pattern(config)
    matrices = 2 if config.get("mlp_hidden_act") == "relu2" else 3
    experts = _first(config, "n_routed_experts", "num_experts", "num_local_experts", default=0)
    dense_ffn = _first(config, "dense_intermediate_size", "intermediate_size_mlp", "intermediate_size", default=0)
    if not experts or config.get("enable_moe_block") is False:
        dense = pattern.count("-") if pattern else layers
        return {"experts": 0, "experts_per_token": 0, "expert_ffn": 0, "dense_layers": dense, "expert_layers": 0,
                "dense_ffn": dense_ffn or _first(config, "intermediate_size"), "ffn_matrices": matrices}  # fmt: skip
    inner = _first(config, "moe_intermediate_size", "intermediate_size")
    moe = pattern.count("E") if pattern else layers - _dense_layers(config, layers)
    dense = pattern.count("-") if pattern else layers - moe
    shared, shared_ffn = _shared(config, inner)
    return {
        "experts": experts,
        "experts_per_token": _first(
            config, "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts"
        ),
        "expert_ffn": inner,
        "shared_experts": shared,
        "shared_ffn": shared_ffn if shared else 0,
        "dense_layers": dense,
        "expert_layers": moe,
        "dense_ffn": dense_ffn if dense else 0,
        "expert_width": _first(config, "routed_expert_hidden_size", "moe_latent_size", default=0),
        "ffn_matrices": matrices,
    }


def _dense_layers(config: Config, layers: int) -> int:
    """Return how many layers have no routed experts, however the file says it."""
    for key, dense in (("moe_layer_freq", 0), ("mlp_layer_types", "dense")):
        stated = config.get(key)
        if isinstance(stated, list):
            return stated.count(dense)
    step = _first(config, "interleave_moe_layer_step", "decoder_sparse_step", default=1)
    only = len(config.get("mlp_only_layers") or [])
    return _first(config, "first_k_dense_replace", default=layers - layers // step + only)


def _shared(config: Config, inner: int) -> tuple[int, int]:
    """Return the shared experts of a layer and their columns."""
    for key in ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim"):
        if config.get(key):
            return 1, int(config[key])
    if config.get("enable_moe_block"):
        return 1, int(config["intermediate_size"])  # Gemma 4: a dense block beside the experts of every layer
    if config.get("interleave_moe_layer_step"):
        return 1, inner  # Llama 4: one shared expert as wide as a routed one
    shared = _first(config, "n_shared_experts", "num_shared_experts", default=0)
    return shared, _first(config, "shared_intermediate_size", default=inner)


def model_from_config(config: Config, name: str, quantization: Config | None = None) -> Model:
    """Return the model that a parsed `config.json` describes.

    Parameters
    ----------
    quantization : mapping, optional
        The `quantization` of a `hf_quant_config.json` beside it, for a `config.json` that states none.

    Raises
    ------
    ConfigError
        For an architecture or a quantisation that is not supported, a missing key, or a key that is not known.
    """
    outer = config
    inside = config.get("text_config") or config
    named = [*(inside.get("architectures") or []), *(outer.get("architectures") or [])]
    known = next((a for a in named if a in ARCHITECTURES), None)
    if known is None:
        shown = named[0] if named else "none given"
        raise ConfigError(f"architecture {shown} is not supported; supported: {', '.join(sorted(ARCHITECTURES))}")
    text = _Recorded(inside)
    try:
        attention = ARCHITECTURES[known](text)
        layers = sum(group.layers for group in attention)
        shapes = _feed_forward(text, layers)
        listed = len(layer_pattern(text)) or layers
        numbered = _first(text, "num_hidden_layers", default=listed)
        stated = inside.get("quantization_config") or outer.get("quantization_config") or quantization
        model = Model(
            name=name,
            width=int(text["hidden_size"]),
            attention=attention,
            **shapes,  # type: ignore[arg-type]  # all are whole numbers, and so are the fields that they name
            vocabulary=int(text["vocab_size"]),
            tied=bool(text.get("tie_word_embeddings", outer.get("tie_word_embeddings", False))),
            context_tokens=_first(text, "max_position_embeddings", "model_max_length", default=131_072),
            expert_bias=known == "GptOssForCausalLM",
            precision=precision_of(text, stated),
            config_source=name,
        )
    except KeyError as missing:
        raise ConfigError(f"{known}: key {missing} is missing") from missing
    except UnknownFormat as problem:
        raise ConfigError(str(problem)) from problem
    except (TypeError, ValueError, ZeroDivisionError) as problem:
        raise ConfigError(f"{known}: a value is not of its kind: {problem}") from problem
    if numbered != listed:
        raise ConfigError(f"{known}: num_hidden_layers = {numbered}, but its list of layers has {listed}")
    unread = _unread(text)
    if unread:
        raise ConfigError(f"{known}: key `{unread[0]}` is not known; it may change the model's shape, so it is refused")
    return model


def load_config(path: Path) -> Model:
    """Read `config.json` at `path` (the file, or the folder that holds it), and `hf_quant_config.json` beside it.

    Raises
    ------
    ConfigError
        When it is not there, not JSON, or not supported.
    """
    file = path / "config.json" if path.is_dir() else path
    beside = file.with_name(file.name.replace("config.json", "hf_quant_config.json"))
    quantization = None
    if beside != file and beside.exists():
        quantization = _json(beside).get("quantization")
    return model_from_config(_json(file), _name(file), quantization)


def _json(file: Path) -> dict[str, Any]:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigError(f"{file}: {problem.strerror or problem}") from problem
    except ValueError as problem:
        raise ConfigError(f"{file}: not JSON: {problem}") from problem
    if not isinstance(config, dict):
        raise ConfigError(f"{file}: a JSON object was expected")
    return config


def _name(file: Path) -> str:
    """Return what to call a model: the folder of a `config.json`, else the file's own name."""
    if file.name == "config.json":
        return file.resolve().parent.name or file.stem
    return file.name.removesuffix(".json").removesuffix("config").rstrip("_-.") or file.stem
