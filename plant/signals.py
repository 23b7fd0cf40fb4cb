"""The plant's rows of the catalogue: what is recorded of each pool of workers and of each tier of KV state.

`source` names an attribute of `Pool` that holds a level (None: not modelled), or a key of `TieredStore.levels`. A part
in angle brackets stands for the name of the configuration or of the tier.
"""

from __future__ import annotations

from orchestrator.catalogue import Kind, Scale, Signal

POOL, TIER = "<pool>", "<tier>"
_GAUGE, _MEAN = Kind.GAUGE, Scale.MEAN
_CLUSTER, _TIERED = "the plant is no cluster", "the plant keeps no tiers of KV state"
POOL_SIGNALS = (
    Signal(name=f"pool.{POOL}.busy_slots", unit="turns", kind=_GAUGE, scale=_MEAN, source="busy",
           meaning="turns in decode batches or under fill in the pool", empty=_CLUSTER),
    Signal(name=f"pool.{POOL}.active_workers", unit="workers", kind=_GAUGE, scale=_MEAN, source="workers",
           meaning="workers in service in the pool", empty=_CLUSTER),
    Signal(name=f"pool.{POOL}.kv_used_ratio", unit="ratio", kind=_GAUGE, scale=Scale.ONE, source="kv",
           meaning="KV memory of the active workers in use; between steps a straight line",
           empty="the pool models no KV memory, or begins without a worker"),
)  # fmt: skip
TIER_SIGNALS = (
    Signal(name=f"kv.used_bytes.{TIER}", unit="bytes", kind=_GAUGE, scale=_MEAN, source="used_bytes",
           meaning="bytes of KV state in the tier, every copy counted", empty="there is no such tier"),
    Signal(name="kv.contexts", unit="contexts", kind=_GAUGE, scale=_MEAN, source="contexts",
           meaning="contexts that are kept", empty=_TIERED),
    Signal(name="kv.staged_contexts", unit="contexts", kind=_GAUGE, scale=_MEAN, source="staged_contexts",
           meaning="contexts in node memory that wait for room in the network tier", empty=_TIERED),
    Signal(name="kv.asked_tokens", unit="tokens", kind=_GAUGE, scale=_MEAN, source="asked_tokens",
           meaning="prompt tokens of all fills since the start", empty=_TIERED),
    Signal(name="kv.cached_tokens", unit="tokens", kind=_GAUGE, scale=_MEAN, source="cached_tokens",
           meaning="prompt tokens found in a tier since the start", empty=_TIERED),
)  # fmt: skip
