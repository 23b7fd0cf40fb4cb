"""Number formats of a checkpoint, from the quantisation stated in `config.json` or in `hf_quant_config.json`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from plant.model.config_attention import Config
from plant.model.precision import Precision


class UnknownFormat(ValueError):
    """A quantisation method that is not read; the message names it."""


def precision_of(config: Config, quantization: Config | None) -> Precision:
    """Return the formats by class of weight; bf16 throughout where nothing is quantised.

    Raises
    ------
    UnknownFormat
        For a method that is not read.
    """
    if not quantization:
        return Precision(dense="bf16", experts="bf16", dispatch_bytes=2.0)
    method = json.dumps(quantization).lower()
    if quantization.get("quant_algo") == "MIXED_PRECISION" or quantization.get("quantized_layers"):
        return _mixed(quantization, method)
    if config.get("expert_dtype") == "fp4":
        # DeepSeek-V4: experts in MXFP4 (scales of one exponent byte), everything else in block-scaled fp8.
        return Precision(dense="fp8", experts="mxfp4", kv_bytes=_kv_bytes(quantization, 2.0), dispatch_bytes=1.03125)
    if "mxfp4" in method:
        return Precision(dense="bf16", experts="mxfp4", dispatch_bytes=1.03125)
    if "nvfp4" in method or (_bits(quantization) == 4 and '"type": "float"' in method):
        return _nvfp4(quantization, method)
    if "fp8" in method or _bits(quantization) == 8:
        return Precision(kv_bytes=_kv_bytes(quantization, 2.0))
    if _bits(quantization) == 4 or "int4" in method or quantization.get("bits") == 4:
        return Precision(dense="bf16", experts="int4", dispatch_bytes=2.0)
    raise UnknownFormat(
        f"quantization method {quantization.get('quant_method')!r} is not supported; fp8, nvfp4, mxfp4, int4 are"
    )


def _nvfp4(quantization: Config, method: str) -> Precision:
    """NVFP4 checkpoints leave modules out by name: attention, shared experts, or the dense part of a layer."""
    ignored = json.dumps(
        quantization.get("ignore")
        or quantization.get("exclude_modules")
        or quantization.get("modules_to_not_convert")
        or []
    ).lower()
    shared = "shared_expert" in ignored or ".mlp*" in ignored
    return Precision(
        dense="bf16" if shared else "nvfp4",
        attention="bf16" if "attn" in ignored else "nvfp4",
        experts="nvfp4",
        kv_bytes=1.0,
        dispatch_bytes=0.5625,
    )


def _mixed(quantization: Config, method: str) -> Precision:
    """Take of each class of weight the format that most of its modules have."""
    counts: dict[str, Counter[str]] = {"attention": Counter(), "dense": Counter(), "experts": Counter()}
    layers: dict[str, Any] = quantization.get("quantized_layers") or {}
    for name, how in layers.items():
        part = "attention" if "attn" in name or ("mixer" in name and "proj" in name) else "dense"
        if "expert" in name and "shared" not in name:
            part = "experts"
        counts[part][str((how or {}).get("quant_algo", "")).lower()] += 1
    rest = "fp8" if '"e4m3"' in method or "mxfp8" in method else "bf16"
    formats = {part: _format(count.most_common(1)[0][0]) if count else rest for part, count in counts.items()}
    if not counts["experts"] and quantization.get("moe_quant_algo"):
        formats["experts"] = _format(str(quantization["moe_quant_algo"]).lower())
    travelling = {"nvfp4": 0.5625, "fp8": 1.03125, "mxfp4": 1.03125}
    return Precision(
        dense=formats["dense"],
        experts=formats["experts"],
        attention=formats["attention"],
        kv_bytes=_kv_bytes(quantization, 2.0),
        dispatch_bytes=travelling.get(formats["experts"], 2.0),
    )


def _format(algorithm: str) -> str:
    for word, name in (("nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("fp8", "fp8"), ("int4", "int4"), ("w4a", "int4")):
        if word in algorithm:
            return name
    raise UnknownFormat(f"quantization algorithm {algorithm!r} is not supported; fp8, nvfp4, mxfp4, int4 are")


def _bits(quantization: Config) -> int:
    groups: dict[str, Any] = quantization.get("config_groups") or {}
    return next((int(group["weights"]["num_bits"]) for group in groups.values() if group.get("weights")), 0)


def _kv_bytes(quantization: Config, otherwise: float) -> float:
    stated = quantization.get("kv_cache_quant_algo") or quantization.get("kv_cache_scheme")
    return (
        1.0 if stated and ("fp8" in json.dumps(stated).lower() or '"num_bits": 8' in json.dumps(stated)) else otherwise
    )
