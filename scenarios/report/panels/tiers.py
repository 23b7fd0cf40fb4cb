"""The tiers of KV state: how full they are over time, how much of the prompts they supply, and where the bytes go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from scenarios.report.numbers import percent, plain
from scenarios.report.panel import Panel, Shown, frame, time_axis
from scenarios.run.figures import PALETTE, bin_middles, level, line_and_band, thin

GROUP = "KV state"
TIERS = {"rack_cache": "rack caches", "node": "node DRAM", "network": "network DRAM", "ssd": "SSD"}
PLACES = ("computed", "accelerators", *TIERS, "discarded")
WORDS = {"computed": "computed", "accelerators": "accelerators", **TIERS, "discarded": "discarded, text kept"}


def timeline(runs: Sequence[Shown]) -> Panel | None:
    """Return the bytes in every tier, and the share of prompt tokens found in them, over time."""
    own = [s for s in runs if s.run.summary.get("kv")]
    tiers = [name for name in TIERS if any(f"kv.used_bytes.{name}_mean" in s.run.signals for s in own)]
    if not tiers:
        return None
    rows = len(tiers) + 1
    figure = frame(
        rows,
        height=80 + 140 * rows,
        shared_xaxes=True,
        vertical_spacing=min(0.1, 0.3 / rows),
        subplot_titles=["prompt tokens found (%)", *(f"{TIERS[name]} (GB)" for name in tiers)],
    )
    for s in own:
        for trace in line_and_band(s.look, *_found(s), scale=100.0, unit="%"):
            figure.add_trace(trace, row=1, col=1)
        for row, name in enumerate(tiers, 2):
            if f"kv.used_bytes.{name}_mean" in s.run.signals:
                curves = level(s.run.signals, f"kv.used_bytes.{name}")
                for trace in line_and_band(s.look, *curves, scale=1e-9, unit="GB"):
                    figure.add_trace(trace, row=row, col=1)
    figure.update_yaxes(rangemode="tozero")
    figure.update_annotations(x=0, xanchor="left")
    time_axis(figure, own, rows=rows)
    return Panel(
        div="panel-kv-tiers",
        title=f"KV tiers: {_hits(own)}",
        note="Found: prompt tokens supplied by any tier in each stretch of time; the rest is computed by fill workers.",
        figure=figure,
        in_time=True,
        group=GROUP,
    )


def _found(s: Shown) -> tuple[Any, ...]:  # arrays of floats
    """Return the share of prompt tokens found, in groups of bins wide enough to hold some."""
    signals = s.run.signals
    asked, cached = (signals[f"kv.{name}_tokens_mean"].to_numpy(dtype=float) for name in ("asked", "cached"))
    size = max(1, len(asked) // 120)
    edges = np.arange(0, len(asked), size)
    asked, cached = np.diff(asked[edges], prepend=0.0), np.diff(cached[edges], prepend=0.0)
    share = np.divide(cached, asked, out=np.full(len(edges), np.nan), where=asked > 0.0)
    return thin(bin_middles(signals)[edges], share, share, share)


def _hits(runs: Sequence[Shown]) -> str:
    ratios = [(s.run.summary["kv"]["hit_token_ratio"], s.name) for s in runs]
    known = sorted((ratio, name) for ratio, name in ratios if ratio is not None)
    if not known:
        return "no prompt was filled in the window"
    (low, worst), (high, best) = known[0], known[-1]
    if len(known) == 1:
        return f"{percent(high)} of prompt tokens found under {best}"
    return f"{percent(low)} of prompt tokens found under {worst}, {percent(high)} under {best}"


def sankey(runs: Sequence[Shown]) -> Panel | None:
    """Return where the bytes of KV state went in the window, one diagram a candidate."""
    own = [s for s in runs if s.run.summary.get("kv") and s.run.summary["kv"].get("flows_bytes")]
    if not own:
        return None
    specs, titles = [[{"type": "domain"}]] * len(own), [s.name for s in own]
    figure = frame(len(own), height=60 + 260 * len(own), specs=specs, subplot_titles=titles)
    for row, s in enumerate(own, 1):
        flows = [flow for flow in s.run.summary["kv"]["flows_bytes"] if flow["bytes"] > 0.0]
        places = [place for place in PLACES if any(place in (f["from"], f["to"]) for f in flows)]
        colors = [PALETTE[PLACES.index(place) % len(PALETTE)] for place in places]
        figure.add_trace(
            go.Sankey(
                node={"label": [WORDS[place] for place in places], "color": colors, "pad": 18, "thickness": 14},
                link={
                    "source": [places.index(f["from"]) for f in flows],
                    "target": [places.index(f["to"]) for f in flows],
                    "value": [f["bytes"] * 1e-12 for f in flows],
                    "color": "rgba(128,128,128,0.25)",
                },
                valueformat=".3g",
                valuesuffix=" TB",
            ),
            row=row,
            col=1,
        )
    return Panel(
        div="panel-kv-sankey",
        title=f"Bytes of KV state: {_moved(own)}",
        note="State is computed or brought to accelerators, staged and kept, sent down a tier or given up.",
        figure=figure,
        group=GROUP,
    )


def _moved(runs: Sequence[Shown]) -> str:
    def brought(s: Shown) -> float:
        flows = s.run.summary["kv"]["flows_bytes"]
        return float(sum(f["bytes"] for f in flows if f["to"] == "accelerators" and f["from"] != "computed"))

    most = max(runs, key=brought)
    return f"{plain(brought(most) * 1e-12)} TB brought to accelerators under {most.name}"
