"""Compare the derived parameter counts of the model presets with the published ones."""

from __future__ import annotations

from typing import TypedDict

from plant.presets.models import MODELS


class CountRow(TypedDict):
    """Counts of one preset; errors are relative. `active` counts the head, not the embedding."""

    model: str
    total: int
    published_total: float
    total_error: float
    exact_total: bool
    active: int
    active_without_head: int
    published_active: float
    active_error: float
    expert_share: float
    kv_bytes_per_token: float
    state_bytes_per_sequence: float
    count_source: str
    config_source: str


def count_rows() -> list[CountRow]:
    """Return one row per preset."""
    return [
        CountRow(
            model=name,
            total=m.total_parameters,
            published_total=m.published_total,
            total_error=m.total_parameters / m.published_total - 1.0,
            exact_total=m.exact_total,
            active=m.active_parameters,
            active_without_head=m.active_parameters - m.embedding_parameters,
            published_active=m.published_active,
            active_error=m.active_parameters / m.published_active - 1.0,
            expert_share=m.expert_share_ratio,
            kv_bytes_per_token=m.kv_bytes_per_token(),
            state_bytes_per_sequence=m.state_bytes_per_sequence(),
            count_source=m.count_source,
            config_source=m.config_source,
        )
        for name, m in MODELS.items()
    ]
