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
READ = "read "


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
        subplot_titles=["prompt tokens found (%)", *(f"{TIERS[name]} (GB{_holds(own, name)})" for name in tiers)],
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


def _holds(runs: Sequence[Shown], tier: str) -> str:
    """Return what the tier holds when it is full, where that is one number."""
    known = {s.run.summary["kv"].get("capacity_bytes", {}).get(tier) for s in runs}
    capacity = known.pop() if len(known) == 1 else None
    return f"; full at {plain(capacity * 1e-9)}" if capacity is not None else ""


def _found(s: Shown) -> tuple[Any, ...]:  # arrays of floats
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


def sankey(runs: Sequence[Shown]) -> Panel | None:
    """Return where the bytes of KV state went in the window, one diagram a candidate.

    What a tier gives stands on the left and what it takes on the right, so that no band runs backwards.
    """
    own = [s for s in runs if s.run.summary.get("kv") and s.run.summary["kv"].get("flows_bytes")]
    if not own:
        return None
    specs, titles = [[{"type": "domain"}]] * len(own), [s.name if len(own) > 1 else "" for s in own]
    figure = frame(len(own), height=60 + 300 * len(own), specs=specs, subplot_titles=titles)
    for row, s in enumerate(own, 1):
        figure.add_trace(_diagram(s.run.summary["kv"]["flows_bytes"]), row=row, col=1)
    figure.update_annotations(x=0, xanchor="left")
    return Panel(
        div="panel-kv-sankey",
        title=f"Bytes of KV state: {_moved(own)}",
        note="Left: what accelerators got, computed or read. Right: what became of it, tier by tier, until given up.",
        figure=figure,
        group=GROUP,
    )


def _diagram(flows: Sequence[dict[str, Any]]) -> go.Sankey:  # Any: names and numbers
    bands = [(_source(f), f["to"], f["bytes"] * 1e-12) for f in flows if f["bytes"] > 0.0]
    places = list(dict.fromkeys(place for source, target, _ in bands for place in (source, target)))
    through = {p: max(sum(b[2] for b in bands if b[end] == p) for end in (0, 1)) for p in places}
    colors = [COLORS[place.removeprefix(READ)] for place in places]
    return go.Sankey(
        node={
            "label": [f"{_words(place)}  {plain(through[place])} TB" for place in places],
            "color": colors,
            "pad": 22,
            "thickness": 12,
            "line": {"width": 0},
        },
        link={
            "source": [places.index(source) for source, _, _ in bands],
            "target": [places.index(target) for _, target, _ in bands],
            "value": [value for _, _, value in bands],
            "color": [_pale(COLORS[source.removeprefix(READ)]) for source, _, _ in bands],
        },
        valueformat=".3g",
        valuesuffix=" TB",
    )


def _source(flow: dict[str, Any]) -> str:
    return READ + flow["from"] if flow["to"] == "accelerators" and flow["from"] != "computed" else str(flow["from"])


def _words(place: str) -> str:
    return f"read from {WORDS[place.removeprefix(READ)]}" if place.startswith(READ) else WORDS[place]


def _pale(color: str) -> str:
    red, green, blue = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.3)"


def _moved(runs: Sequence[Shown]) -> str:
    shares = []
    for s in runs:
        got = [f for f in s.run.summary["kv"]["flows_bytes"] if f["to"] == "accelerators"]
        read = sum(f["bytes"] for f in got if f["from"] != "computed")
        shares.append((read, sum(f["bytes"] for f in got), s.name))
    read, all_of_it, name = max(shares)
    return f"{plain(read * 1e-12)} of {plain(all_of_it * 1e-12)} TB read, the rest computed, under {name}"
