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
WORDS = {"computed": "computed", "accelerators": "accelerators", **TIERS, "discarded": "discarded, text kept"}
COLORS = {**dict(zip(("computed", "accelerators", *TIERS), PALETTE)), "discarded": "#888888"}
GOT, LEFT = " got", " left"
_COLOR_OF = {WORDS[place]: color for place, color in COLORS.items()}


def timeline(runs: Sequence[Shown]) -> Panel | None:
    """Return the bytes in every tier, and the share of prompt tokens found in them, over time."""
    with_tiers = [s for s in runs if s.run.summary.get("kv")]
    tiers = [name for name in TIERS if any(f"kv.used_bytes.{name}_mean" in s.run.signals for s in with_tiers)]
    if not tiers:
        return None
    rows = len(tiers) + 1
    figure = frame(
        rows,
        height=80 + 140 * rows,
        shared_xaxes=True,
        vertical_spacing=min(0.1, 0.3 / rows),
        subplot_titles=[
            "prompt tokens found (%)",
            *(f"{TIERS[name]} (GB{_holds(with_tiers, name)})" for name in tiers),
        ],
    )
    for s in with_tiers:
        for trace in line_and_band(s.look, *_hit_shares(s), scale=100.0, unit="%"):
            figure.add_trace(trace, row=1, col=1)
        for row, name in enumerate(tiers, 2):
            if f"kv.used_bytes.{name}_mean" in s.run.signals:
                curves = level(s.run.signals, f"kv.used_bytes.{name}")
                for trace in line_and_band(s.look, *curves, scale=1e-9, unit="GB"):
                    figure.add_trace(trace, row=row, col=1)
    figure.update_yaxes(rangemode="tozero")
    figure.update_annotations(x=0, xanchor="left")
    time_axis(figure, with_tiers, rows=rows)
    return Panel(
        div="panel-kv-tiers",
        title=f"KV tiers: {_hits(with_tiers)}",
        note="Found: prompt tokens supplied by any tier in each stretch of time; the rest is computed by fill workers.",
        figure=figure,
        in_time=True,
        group=GROUP,
    )


def _holds(runs: Sequence[Shown], tier: str) -> str:
    """Return what the tier holds when it is full, where that is one number."""
    known = {s.run.summary["kv"].get("capacity_bytes", {}).get(tier) for s in runs}
    capacity = known.pop() if len(known) == 1 else None
    return f"; full at {plain(capacity * 1e-9)}" if capacity is not None else ""


def _hit_shares(s: Shown) -> tuple[Any, ...]:  # arrays of floats
    """Return the share of prompt tokens found, in groups of bins wide enough to hold some.

    The greatest value of a sum that only grows is the one at the end of the bin.
    """
    signals = s.run.signals
    asked, cached = (signals[f"kv.{name}_tokens_max"].to_numpy(dtype=float) for name in ("asked", "cached"))
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


def flows(runs: Sequence[Shown]) -> Panel | None:
    """Return where the bytes of KV state came from and went in the window: a bar each way for every candidate."""
    with_tiers = [s for s in runs if s.run.summary.get("kv") and s.run.summary["kv"].get("flows_bytes")]
    if not with_tiers:
        return None
    figure = frame(height=110 + 64 * len(with_tiers))
    bands: dict[str, dict[str, float]] = {}
    for s in with_tiers:
        for flow in s.run.summary["kv"]["flows_bytes"]:
            if flow["bytes"] > 0.0:
                bar, name = _band(flow, s.name if len(with_tiers) > 1 else "")
                values = bands.setdefault(name, {})
                values[bar] = values.get(bar, 0.0) + flow["bytes"] * 1e-12
    bars = [f"{s.name if len(with_tiers) > 1 else ''}{way}" for s in reversed(with_tiers) for way in (LEFT, GOT)]
    for name, values in bands.items():
        place = name.removeprefix("read from ").removeprefix("to ")
        figure.add_trace(
            go.Bar(
                y=list(values),
                x=list(values.values()),
                orientation="h",
                name=name,
                marker={"color": _COLOR_OF[place]},
                hovertemplate=f"{name}: %{{x:.3g}} TB<extra></extra>",
            )
        )
    figure.update_layout(barmode="stack", bargap=0.25, showlegend=True, hovermode="closest")
    figure.update_layout(legend={"orientation": "h", "y": -0.25}, margin={"l": 150})
    figure.update_yaxes(categoryorder="array", categoryarray=bars)
    figure.update_xaxes(title_text="TB")
    return Panel(
        div="panel-kv-flows",
        title=f"Bytes of KV state: {_moved(with_tiers)}",
        note="Got: what accelerators computed or read. Left: what became of it, tier by tier, until it was discarded.",
        figure=figure,
        group=GROUP,
    )


def _band(flow: dict[str, Any], candidate: str) -> tuple[str, str]:  # Any: names and numbers
    if flow["to"] != "accelerators":
        return candidate + LEFT, f"to {WORDS[flow['to']]}"
    return candidate + GOT, "computed" if flow["from"] == "computed" else f"read from {WORDS[flow['from']]}"


def _moved(runs: Sequence[Shown]) -> str:
    shares = []
    for s in runs:
        got = [f for f in s.run.summary["kv"]["flows_bytes"] if f["to"] == "accelerators"]
        read = sum(f["bytes"] for f in got if f["from"] != "computed")
        shares.append((read, sum(f["bytes"] for f in got), s.name))
    read, all_of_it, name = max(shares)
    return f"{plain(read * 1e-12)} of {plain(all_of_it * 1e-12)} TB read, the rest computed, under {name}"
