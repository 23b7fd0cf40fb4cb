"""A mixture-of-experts model as serving sees it: attention groups, dense layers, expert banks, their bytes and counts.

E7's layer group is a tuple of attention kinds with the layers of each; what repeats inside a kind is uniform.
Parameters are counted tensor by tensor, so that totals can be held against a published checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """Sparse top-k selection in front of latent attention (DeepSeek Sparse Attention)."""

    heads: int
    head_dim: int
    top_tokens: int

    # One fp8 key of `head_dim` and a 4-byte scale per token (DeepSeek-V3.2 technical report).
    @property
    def bytes_per_token(self) -> float:
        """Bytes of index cache per token and layer."""
        return self.head_dim + 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention, with an output gate or a sparse indexer where the model has them."""

    layers: int
    heads: int
    q_rank: int = 1536
    kv_rank: int = 512
    rope_dim: int = 64
    nope_dim: int = 128
    value_dim: int = 128
    gate: bool = False
    indexer: Indexer | None = None

    @property
    def label(self) -> str:
        """Short name."""
        return "DSA" if self.indexer else "MLA"

    def parameters(self, width: int) -> int:
        """Weights of one layer's attention."""
        query = self.nope_dim + self.rope_dim
        total = width * (self.kv_rank + self.rope_dim) + self.kv_rank * self.heads * (self.nope_dim + self.value_dim)
        total += self.heads * self.value_dim * width * (2 if self.gate else 1)
        if self.q_rank:
            total += width * self.q_rank + self.q_rank * self.heads * query + self.q_rank
        else:
            total += width * self.heads * query
        if self.indexer:
            i = self.indexer
            total += self.q_rank * i.heads * i.head_dim + width * (i.head_dim + i.heads) + 2 * i.head_dim
        return total + self.kv_rank

    def kv_bytes_per_token(self, precision: Precision) -> float:
        """Bytes that one layer keeps per position."""
        index = self.indexer.bytes_per_token if self.indexer else 0.0
        return (self.kv_rank + self.rope_dim) * precision.kv_bytes + index

    def state_bytes_per_sequence(self, precision: Precision) -> float:
        """Bytes that one layer keeps per sequence whatever its length."""
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """Grouped-query attention; with `window` > 0 it sees only the last `window` positions."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int = 128
    window: int = 0
    gate: bool = False

    @property
    def label(self) -> str:
        """Short name."""
        return "SWA" if self.window else "GQA"

    def parameters(self, width: int) -> int:
        """Weights of one layer's attention."""
        inner = self.heads * self.head_dim
        return width * (inner * (3 if self.gate else 2) + 2 * self.kv_heads * self.head_dim)

    def kv_bytes_per_token(self, precision: Precision) -> float:
        """Bytes that one layer keeps per position; a window keeps a constant instead."""
        return 0.0 if self.window else 2.0 * self.kv_heads * self.head_dim * precision.kv_bytes

    def state_bytes_per_sequence(self, precision: Precision) -> float:
        """Bytes that one layer keeps per sequence whatever its length."""
        return self.window * 2.0 * self.kv_heads * self.head_dim * precision.kv_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """Linear attention with a constant state: KDA (a decay per channel) or gated delta net (a decay per head)."""

    layers: int
    heads: int
    key_heads: int
    key_dim: int = 128
    value_dim: int = 128
    conv: int = 4
    gate_rank: int = 0
    decay_rank: int = 0

    @property
    def label(self) -> str:
        """Short name."""
        return "KDA" if self.decay_rank else "GDN"

    def parameters(self, width: int) -> int:
        """Weights of one layer's attention: q, k, v, output gate, decay, write strength, convolution, output."""
        values, keys = self.heads * self.value_dim, self.key_heads * self.key_dim
        gate = self.gate_rank * (width + values) if self.gate_rank else width * values
        decay = self.decay_rank * (width + self.heads * self.key_dim) if self.decay_rank else width * self.heads
        return width * (2 * keys + 2 * values) + gate + decay + width * self.heads + self.conv * (2 * keys + values)

    def kv_bytes_per_token(self, precision: Precision) -> float:
        """Nothing grows with the context."""
        return 0.0

    def state_bytes_per_sequence(self, precision: Precision) -> float:
        """Bytes of the recurrent matrix and of the convolution's last inputs, per layer and sequence."""
        matrix = self.heads * self.key_dim * self.value_dim * precision.state_bytes
        tail = (self.conv - 1) * (2 * self.key_heads * self.key_dim + self.heads * self.value_dim) * 2.0
        return matrix + tail


Attention = Latent | Grouped | Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One mixture-of-experts model.

    `expert_width` is the model width that routed experts see: smaller than `width` in a latent mixture, which adds a
    projection down and one up. `mtp_embeddings` says that a multi-token-prediction layer ships its own embedding and
    head. `published_total` and `published_active` are the public figures, with `count_source` naming where from;
    `exact_total` marks a checkpoint's own tensor count rather than a rounded figure.
    """

    name: str
    width: int
    attention: tuple[Attention, ...]
    experts: int
    experts_per_token: int
    expert_ffn: int
    shared_experts: int = 0
    shared_ffn: int = 0
    dense_layers: int = 0
    dense_ffn: int = 0
    expert_width: int = 0
    vocabulary: int = 129_280
    mtp_layers: int = 0
    mtp_embeddings: bool = False
    context_tokens: int = 131_072
    expert_bias: bool = False
    precision: Precision = field(default_factory=Precision)
    published_total: float = 0.0
    published_active: float = 0.0
    exact_total: bool = False
    count_source: str = ""
    config_source: str = ""

    @property
    def layers(self) -> int:
        """Layers in all."""
        return sum(group.layers for group in self.attention)

    @property
    def moe_layers(self) -> int:
        """Layers with routed experts."""
        return self.layers - self.dense_layers

    @property
    def routed_width(self) -> int:
        """Width of the activation that travels to an expert."""
        return self.expert_width or self.width

    @property
    def latent(self) -> bool:
        """Whether experts run at a narrower width behind two projections."""
        return bool(self.expert_width)

    @property
    def layer_experts(self) -> int:
        """Routed experts over all layers."""
        return self.moe_layers * self.experts

    @property
    def expert_parameters(self) -> int:
        """Weights of one routed expert: gate, up and down."""
        bias = (2 * self.expert_ffn + self.routed_width) if self.expert_bias else 0
        return 3 * self.routed_width * self.expert_ffn + bias

    @property
    def shared_parameters(self) -> int:
        """Weights beside the routed experts in one expert layer: shared experts, router, latent projections."""
        latent = 2 * self.width * self.expert_width
        return 3 * self.width * self.shared_ffn * self.shared_experts + self.width * self.experts + latent

    @property
    def attention_parameters(self) -> int:
        """Attention weights over all layers."""
        return sum(group.layers * group.parameters(self.width) for group in self.attention)

    @property
    def routed_parameters(self) -> int:
        """Routed-expert weights over all layers."""
        return self.layer_experts * self.expert_parameters

    @property
    def dense_parameters(self) -> int:
        """Dense, shared, router and latent weights and norms over all layers."""
        dense = self.dense_layers * 3 * self.width * self.dense_ffn + self.moe_layers * self.shared_parameters
        return dense + 2 * self.width * self.layers

    @property
    def embedding_parameters(self) -> int:
        """Embedding alone; the head has as many again."""
        return self.vocabulary * self.width

    @property
    def mtp_parameters(self) -> int:
        """Weights of the multi-token-prediction layers that a checkpoint ships."""
        group = self.attention[-1]
        layer = group.parameters(self.width) + self.experts * self.expert_parameters + self.shared_parameters
        layer += 2 * self.width * self.width
        return self.mtp_layers * (layer + (2 * self.embedding_parameters if self.mtp_embeddings else 0))

    @property
    def total_parameters(self) -> int:
        """All weights of the checkpoint, with embedding, head and prediction layers."""
        body = self.attention_parameters + self.routed_parameters + self.dense_parameters
        return body + 2 * self.embedding_parameters + self.mtp_parameters

    @property
    def active_parameters(self) -> int:
        """Weights that one token meets: the head is counted, the embedding (a look-up) and prediction layers not."""
        routed = self.moe_layers * self.experts_per_token * self.expert_parameters
        return self.attention_parameters + self.dense_parameters + routed + self.embedding_parameters

    @property
    def expert_share_ratio(self) -> float:
        """Share of the layers' weights (without embedding and head) that lies in routed experts."""
        body = self.attention_parameters + self.routed_parameters + self.dense_parameters
        return self.routed_parameters / body

    def kv_bytes_per_token(self, precision: Precision | None = None) -> float:
        """Bytes of KV per position over all layers."""
        p = precision or self.precision
        return fsum(group.layers * group.kv_bytes_per_token(p) for group in self.attention)

    def state_bytes_per_sequence(self, precision: Precision | None = None) -> float:
        """Bytes of state per sequence over all layers: recurrent matrices and attention windows."""
        p = precision or self.precision
        return fsum(group.layers * group.state_bytes_per_sequence(p) for group in self.attention)

    def weight_bytes(self, precision: Precision | None = None) -> dict[str, float]:
        """Bytes by kind of weight over all layers; prediction layers are left out unless they are run."""
        p = precision or self.precision
        return {
            "attention": self.attention_parameters * p.attention_format.bytes_per_value,
            "dense": self.dense_parameters * p.dense_format.bytes_per_value,
            "experts": self.routed_parameters * p.expert_format.bytes_per_value,
            "embedding": 2 * self.embedding_parameters * FORMATS[p.head].bytes_per_value,
        }
