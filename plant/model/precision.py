"""Number formats of tensors, and which format each class of a model's tensors has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a class of tensors is stored and multiplied.

    `bytes_per_value` includes block scales; `math` names the tensor-core rate that its products run at.
    """

    name: str
    bytes_per_value: float
    math: str


# Block scales: MXFP4 is one byte per 32 values (OCP MX 1.0), NVFP4 one per 16 (NVIDIA), fp8 one float per 128 x 128.
# "mxfp4" is multiplied with fp8 activations (W4A8, what SGLang serves on Blackwell), "int4" with bf16 (Marlin, W4A16).
FORMATS = {
    f.name: f
    for f in (
        Format(name="bf16", bytes_per_value=2.0, math="bf16"),
        Format(name="fp8", bytes_per_value=1.0, math="fp8"),
        Format(name="nvfp4", bytes_per_value=0.5625, math="fp4"),
        Format(name="mxfp4", bytes_per_value=0.53125, math="fp8"),
        Format(name="mxfp4_a16", bytes_per_value=0.53125, math="bf16"),
        Format(name="int4", bytes_per_value=0.5625, math="bf16"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Formats by class: dense weights, expert weights, KV cache (bytes), dispatch and recurrent state (bytes)."""

    dense: str = "fp8"
    experts: str = "fp8"
    head: str = "bf16"
    kv_bytes: float = 2.0
    dispatch_bytes: float = 1.0
    state_bytes: float = 4.0
    attention: str | None = None

    @property
    def dense_format(self) -> Format:
        """Format of dense feed-forward and shared-expert weights."""
        return FORMATS[self.dense]

    @property
    def attention_format(self) -> Format:
        """Format of attention projections; that of the dense weights unless a checkpoint keeps them wider."""
        return FORMATS[self.attention or self.dense]

    @property
    def expert_format(self) -> Format:
        """Format of routed experts."""
        return FORMATS[self.experts]
