"""The `kv` block of a run's summary: what the tiers of KV state did in the window, from the bins' own columns.

Sums grow from the start of the run, so a figure of the window is the difference between its last bin and the last one
before it. Levels are averaged over the bins inside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from scenarios.run.metrics import Window, bins_inside

PREFIX = "kv."


def kv_figures(signals: pd.DataFrame, window_s: Window) -> dict[str, Any] | None:
    """Return hits, moves, evictions and levels of the tiers; None where the plant has none.

    `hit_token_ratio` = cached over prompt tokens of the fills asked for in the window; `hit_tokens` by the tier that
    they came from; `evictions` by reason, in contexts; `hbm_idle_byte_s` = bytes of KV state times the seconds that
    they lay in accelerator memory without work; `staging_depth` = contexts staged in nodes that wait for room.
    """
    names = [str(name)[len(PREFIX) : -len("_mean")] for name in signals if str(name).startswith(PREFIX)]
    names = [name for name in names if f"{PREFIX}{name}_mean" in signals]
    if not names:
        return None
    inside, _ = bins_inside(signals, window_s)
    rows = np.flatnonzero(inside)
    if not len(rows):
        return None

    def column(name: str) -> np.ndarray:
        return signals[f"{PREFIX}{name}_mean"].to_numpy(dtype=float)

    def gained(name: str) -> float:
        values = column(name)
        before = values[rows[0] - 1] if rows[0] > 0 else 0.0
        return float(values[rows[-1]] - before)

    def group(prefix: str) -> dict[str, float]:
        return {name[len(prefix) + 1 :]: gained(name) for name in names if name.startswith(f"{prefix}.")}

    asked = gained("asked_tokens")
    used = {name.split(".", 1)[1]: float(column(name)[rows].mean()) for name in names if name.startswith("used_bytes.")}
    depth = column("staged_contexts")[rows]
    return {
        "hit_token_ratio": gained("cached_tokens") / asked if asked else None,
        "prompt_tokens": asked,
        "hit_tokens": group("hit_tokens"),
        "rebuilt_tokens": gained("rebuilt_tokens"),
        "evictions": group("evicted"),
        "evicted_tokens": group("evicted_tokens"),
        "evicted_bytes": group("evicted_bytes"),
        "demotions": gained("demoted"),
        "promotions": gained("promoted"),
        "moved_bytes": group("moved_bytes"),
        "link_bytes": group("link_bytes"),
        "rerouted": gained("rerouted") if "rerouted" in names else 0.0,
        "used_bytes": used,
        "contexts": float(column("contexts")[rows].mean()),
        "staging_depth": {"mean": float(depth.mean()), "max": float(depth.max())},
        "hbm_idle_byte_s": gained("hbm_idle_byte_s"),
    }
