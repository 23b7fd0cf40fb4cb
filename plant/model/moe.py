"""A model as serving sees it, dense or a mixture of experts: attention groups, feed-forward layers, their bytes.

The layer group of the essay (section 7) is a tuple of attention kinds, each with its number of layers; layers of one
kind are alike. Parameters are counted tensor by tensor, so that totals can be compared with a published checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum

from plant.model.attention import Attention
from plant.model.precision import FORMATS, Precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model: a mixture of experts, or a dense one (`experts` 0, every layer a dense one).

    `expert_layers` None: every layer that is not dense. `ffn_matrices` 2 stands for a feed-forward without a gate.
    `tied`: embedding and head are one.
    `expert_width` is the model width that routed experts see: smaller than `width` in a latent mixture, which adds a
    projection down and one up. `mtp_embeddings` says that a multi-token-prediction layer ships an embedding and
    head. `published_total` and `published_active` are the public figures, with `count_source` naming where from;
    `exact_total` marks the tensor count of a checkpoint rather than a rounded figure.
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
    expert_layers: int | None = None
    ffn_matrices: int = 3
    tied: bool = False
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
        return self.layers - self.dense_layers if self.expert_layers is None else self.expert_layers

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
        """Weights of one routed expert: gate (where it has one), up and down."""
        bias = (2 * self.expert_ffn + self.routed_width) if self.expert_bias else 0
        return self.ffn_matrices * self.routed_width * self.expert_ffn + bias

    @property
    def shared_parameters(self) -> int:
        """Weights beside the routed experts in one expert layer: shared experts, router, latent projections."""
        latent = 2 * self.width * self.expert_width
        shared = self.ffn_matrices * self.width * self.shared_ffn * self.shared_experts
        return shared + self.width * self.experts + latent

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
        dense = self.dense_layers * self.ffn_matrices * self.width * self.dense_ffn
        dense += self.moe_layers * self.shared_parameters
        return dense + 2 * self.width * self.layers

    @property
    def embedding_parameters(self) -> int:
        """Embedding alone; the head has as many again, unless they are tied."""
        return self.vocabulary * self.width

    @property
    def end_parameters(self) -> int:
        """Embedding and head together."""
        return self.embedding_parameters * (1 if self.tied else 2)

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
        return body + self.end_parameters + self.mtp_parameters

    @property
    def active_parameters(self) -> int:
        """Weights that one token meets: the head is counted, the embedding (a look-up) and prediction layers not."""
        routed = self.moe_layers * self.experts_per_token * self.expert_parameters
        return self.attention_parameters + self.dense_parameters + routed + self.embedding_parameters

    @property
    def expert_share_ratio(self) -> float:
        """Share of the layers' weights (without embedding and head) that is in routed experts."""
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
            "embedding": self.end_parameters * FORMATS[p.head].bytes_per_value,
        }
