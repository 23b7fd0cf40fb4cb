"""The `kv` block of a run's summary: hits, moves, evictions and levels of the KV tiers in the window.

The plant's figures are sums since the start, so those of the window are what they grew by from the end of the warm-up
to the end of the run. Levels are means over the window's bins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from orchestrator.clock import SLEEP, Clock
from plant.kv.tiered import TieredStore
from scenarios.run.metrics import Window, bins_inside


class TierWatch:
    """Read the tiers' sums at the end of the warm-up and at the end of the run.

    Parameters
    ----------
    clock : Clock
    tiers : TieredStore
    warmup_s : float
    """

    def __init__(self, clock: Clock, tiers: TieredStore, warmup_s: float) -> None:
        self._tiers = tiers
        self._before: dict[str, float] = {}
        if warmup_s > 0.0:
            clock.at(warmup_s, self._begin, None, SLEEP)

    def _begin(self, _: None) -> None:
        self._before = dict(self._tiers.values())

    def gained(self) -> dict[str, float]:
        """Return every figure's growth since the end of the warm-up; capacities as they stand."""
        return {
            name: value if name.startswith("capacity_bytes.") else value - self._before.get(name, 0.0)
            for name, value in self._tiers.values()
        }


def kv_figures(gained: dict[str, float], signals: pd.DataFrame, window_s: Window) -> dict[str, Any]:
    """Return hits, moves, evictions and levels of the tiers.

    `hit_token_ratio` = cached over prompt tokens of the fills asked for in the window; `hit_tokens` by the tier that
    they came from; `evictions` by reason, in contexts; `hbm_idle_byte_s` = bytes of KV state times the seconds that
    they lay in accelerator memory without work; `staging_depth` = contexts staged in nodes that wait for room.
    """
    inside, _ = bins_inside(signals, window_s)

    def level(name: str, part: str = "mean") -> np.ndarray:
        return signals[f"kv.{name}_{part}"].to_numpy(dtype=float)[inside]

    def group(prefix: str) -> dict[str, float]:
        return {name[len(prefix) + 1 :]: grown for name, grown in gained.items() if name.startswith(f"{prefix}.")}

    asked = gained["asked_tokens"]
    depth, most = level("staged_contexts"), level("staged_contexts", "max")
    used = [
        str(name)[len("kv.used_bytes.") : -len("_mean")] for name in signals if str(name).startswith("kv.used_bytes.")
    ]
    used = [name for name in used if f"kv.used_bytes.{name}_mean" in signals]
    return {
        "hit_token_ratio": gained["cached_tokens"] / asked if asked else None,
        "prompt_tokens": asked,
        "hit_tokens": group("hit_tokens"),
        "rebuilt_tokens": gained["rebuilt_tokens"],
        "evictions": group("evicted"),
        "evicted_tokens": group("evicted_tokens"),
        "evicted_bytes": group("evicted_bytes"),
        "demotions": gained["demoted"],
        "promotions": gained["promoted"],
        "moved_bytes": group("moved_bytes"),
        "link_bytes": group("link_bytes"),
        "flows_bytes": _flows(gained),
        "rerouted": gained.get("rerouted", 0.0),
        "used_bytes": {name: _mean(level(f"used_bytes.{name}")) for name in used},
        "capacity_bytes": group("capacity_bytes"),
        "contexts": _mean(level("contexts")),
        "staging_depth": {"mean": _mean(depth), "max": float(most.max()) if len(most) else None},
        "hbm_idle_byte_s": gained["hbm_idle_byte_s"],
    }


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def _flows(gained: dict[str, float]) -> list[dict[str, Any]]:
    """Return what flowed between places, in bytes: computed, accelerators, the tiers, discarded."""
    staged = gained["written_bytes.node"]
    into_network = gained["written_bytes.network"]
    flows = [("computed", "accelerators", gained["computed_bytes"])]
    taken = {name.split(".", 1)[1]: size for name, size in gained.items() if name.startswith("taken_bytes.")}
    flows += [(source, "accelerators", size) for source, size in taken.items()]
    flows += [
        ("accelerators", "node", staged),
        ("node", "network", min(staged, into_network)),
        ("accelerators", "network", max(0.0, into_network - staged)),
        ("network", "ssd", gained["written_bytes.ssd"]),
        *((tier, "discarded", gained[f"given_up_bytes.{tier}"]) for tier in ("network", "ssd")),
    ]
    return [{"from": source, "to": target, "bytes": size} for source, target, size in flows if size > 0.0]
