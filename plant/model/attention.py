"""Kinds of attention, with their parameters and the bytes that each keeps per position and per sequence.

One instance describes all layers of its kind in a model.
"""

from __future__ import annotations

from dataclasses import dataclass

from plant.model.precision import Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer:
    """Sparse top-k selection in front of attention (DeepSeek Sparse Attention); `shared`: that of the layer before."""

    heads: int
    head_dim: int
    top_tokens: int
    shared: bool = False

    # One fp8 key of `head_dim` and a 4-byte scale per token (DeepSeek-V3.2 technical report).
    @property
    def bytes_per_token(self) -> float:
        """Bytes of index cache per token and layer."""
        return 0.0 if self.shared else self.head_dim + 4.0

    def parameters(self, width: int, query_width: int) -> int:
        """Weights of one layer's selection: queries, the key, weights of the heads and the key's norm."""
        if self.shared:
            return 0
        return query_width * self.heads * self.head_dim + width * (self.head_dim + self.heads) + 2 * self.head_dim


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
            total += self.indexer.parameters(width, self.q_rank)
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
    """Grouped-query attention; with `window` > 0 it sees only the last `window` positions.

    `value_dim` 0: values as wide as keys. `shared_kv`: one projection gives keys and values (both are kept). An
    `indexer` selects blocks of positions first.
    """

    layers: int
    heads: int
    kv_heads: int
    head_dim: int = 128
    window: int = 0
    gate: bool = False
    value_dim: int = 0
    shared_kv: bool = False
    indexer: Indexer | None = None

    @property
    def label(self) -> str:
        """Short name."""
        return "SWA" if self.window else "BSA" if self.indexer else "GQA"

    @property
    def pair_dim(self) -> int:
        """Values of a key and a value of one head together."""
        return self.head_dim + (self.value_dim or self.head_dim)

    def parameters(self, width: int) -> int:
        """Weights of one layer's attention."""
        kv = self.kv_heads * (self.head_dim if self.shared_kv else self.pair_dim)
        gate = self.heads * self.head_dim if self.gate else 0
        index = self.indexer.parameters(width, width) if self.indexer else 0
        return width * (self.heads * self.pair_dim + gate + kv) + index

    def kv_bytes_per_token(self, precision: Precision) -> float:
        """Bytes that one layer keeps per position; a window keeps a constant instead."""
        index = self.indexer.bytes_per_token if self.indexer else 0.0
        return 0.0 if self.window else self.kv_heads * self.pair_dim * precision.kv_bytes + index

    def state_bytes_per_sequence(self, precision: Precision) -> float:
        """Bytes that one layer keeps per sequence whatever its length."""
        return self.window * self.kv_heads * self.pair_dim * precision.kv_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedAttention:
    """One shared key-value head over a compressed context beside a window (DeepSeek-V4's CSA and HCA).

    `ratio` positions become one entry of the compressed cache; 0: the window alone. An `indexer` selects entries.
    Queries are projected through `q_rank`, outputs in `out_groups` groups through `out_rank`.
    """

    layers: int
    heads: int
    head_dim: int
    q_rank: int
    out_groups: int
    out_rank: int
    ratio: int
    window: int
    indexer: Indexer | None = None

    @property
    def label(self) -> str:
        """Short name."""
        return "CSA" if self.indexer else "HCA" if self.ratio else "SWA"

    def parameters(self, width: int) -> int:
        """Weights of one layer's attention; the compressor has a gate and, where it overlaps, a second set."""
        inner = self.heads * self.head_dim
        compressor = 0 if not self.ratio else width * 2 * self.head_dim * (2 if self.indexer else 1)
        index = self.indexer.parameters(width, self.q_rank) if self.indexer else 0
        query = self.q_rank * (width + inner)
        return (
            query
            + width * self.head_dim
            + compressor
            + inner * self.out_rank
            + index
            + (self.out_groups * self.out_rank * width)
        )

    def kv_bytes_per_token(self, precision: Precision) -> float:
        """Bytes that one layer keeps per position: its share of a compressed entry."""
        index = self.indexer.bytes_per_token if self.indexer else 0.0
        return (self.head_dim * precision.kv_bytes + index) / self.ratio if self.ratio else 0.0

    def state_bytes_per_sequence(self, precision: Precision) -> float:
        """Bytes that one layer keeps per sequence whatever its length: the window."""
        return self.window * self.head_dim * precision.kv_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Linear attention with a constant state: KDA (a decay per channel), gated delta net (per head), or Mamba-2."""

    layers: int
    heads: int
    key_heads: int
    key_dim: int = 128
    value_dim: int = 128
    conv: int = 4
    gate_rank: int = 0
    decay_rank: int = 0
    kind: str = ""

    @property
    def label(self) -> str:
        """Short name."""
        return self.kind or ("KDA" if self.decay_rank else "GDN")

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


Attention = LatentAttention | GroupedAttention | LinearAttention | CompressedAttention
