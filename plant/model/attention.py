"""Kinds of attention, with their parameters and the bytes that each keeps per position and per sequence.

One instance describes all layers of its kind in a model.
"""

from __future__ import annotations

from dataclasses import dataclass

from plant.model.precision import Precision


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
class LatentAttention:
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
class GroupedAttention:
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
class LinearAttention:
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


Attention = LatentAttention | GroupedAttention | LinearAttention
