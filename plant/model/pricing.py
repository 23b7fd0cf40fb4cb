"""Cost of tokens from the price of accelerator hours, and their price by interactivity (essay, sections 16 and 20).

A token that arrives fast is worth more than one that arrives in bulk: the price rises with tokens per second and user
from a floor towards a ceiling,

    price(s) = floor + (ceiling - floor) / (1 + (half / s)^2)

so that value per accelerator-hour is throughput x price, and a large batch can earn less than a small one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plant.model.kernels import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceCurve:
    """Price per million output tokens over interactivity; the defaults are an illustration, not a market survey."""

    floor_per_mtoken: float = 1.0
    ceiling_per_mtoken: float = 10.0
    half_tokens_per_s: float = 60.0

    def price_per_mtoken(self, tokens_per_s: Array) -> Array:
        """Return the price at `tokens_per_s` per user."""
        ratio = self.half_tokens_per_s / np.maximum(tokens_per_s, 1e-9)
        return self.floor_per_mtoken + (self.ceiling_per_mtoken - self.floor_per_mtoken) / (1.0 + ratio * ratio)


def cost_per_mtoken(gpu_hour_price: float, tokens_per_s_per_gpu: Array) -> Array:
    """Return the cost of a million tokens."""
    return np.asarray(gpu_hour_price / 3600.0 / np.maximum(tokens_per_s_per_gpu, 1e-12) * 1e6)


def cost_per_turn(gpu_hour_price: float, tokens: float, tokens_per_s_per_gpu: Array) -> Array:
    """Return the cost of one turn's `tokens` at that throughput."""
    return np.asarray(cost_per_mtoken(gpu_hour_price, tokens_per_s_per_gpu) * tokens / 1e6)


def value_per_gpu_hour(curve: PriceCurve, tpot_s: Array, tokens_per_s_per_gpu: Array) -> Array:
    """Return what an accelerator earns in an hour at that interactivity and throughput."""
    return np.asarray(curve.price_per_mtoken(1.0 / tpot_s) * tokens_per_s_per_gpu * 3600.0 / 1e6)
