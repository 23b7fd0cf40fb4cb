"""Draw the planner's charts: the essay's Figures 6, 7, 10, 16, 20, 21, 23 and 26 to 29, from computed numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from plant.model.moe import Model
from scenarios.plan.explain import Slice, layer_bars
from scenarios.plan.frontier import Frontier, Point
from scenarios.plan.page import COLOURS, Chart, gantt, layout, lines
from scenarios.plan.views import FasterMemory, Intensity, MemoryValue, expert_intensity, sharing


def _hover(p: Point) -> str:
    pieces = f", {p.chunks} pieces" if p.chunks > 1 else ""
    return f"{p.placement.label()}, {p.gpus} GPUs, batch {p.batch}{pieces}"


def _name(f: Frontier) -> str:
    return f"{f.hardware.name} {f.question.regime}"


def frontier_charts(frontiers: Sequence[Frontier]) -> list[Chart]:
    """Return the four views of the same frontiers (Figures 26 to 29)."""
    shown = [f for f in frontiers if f.points]
    texts = [[_hover(p) for p in f.points] for f in shown]
    rates = [[p.tokens_per_s_per_gpu for p in f.points] for f in shown]
    latency = "time per output token, or to the first token (ms)"
    throughput = "tokens per second and GPU"

    def series(values: list[list[float]]) -> list[tuple[str, list[float], list[float], list[str]]]:
        return [(_name(f), r, v, t) for f, r, v, t in zip(shown, rates, values, texts)]

    milliseconds = [[p.latency_s * 1e3 for p in f.points] for f in shown]
    energy = lines(
        [
            *((f"{_name(f)} dynamic", r, [p.energy_j_per_query for p in f.points], t)
              for f, r, t in zip(shown, rates, texts)),
            *((f"{_name(f)} all-in", r, [p.energy_all_in_j_per_query for p in f.points], t)
              for f, r, t in zip(shown, rates, texts)),
        ],
        pairs=len(shown),
    )  # fmt: skip
    memory = [[p.hbm_bytes_per_gpu / 1e9 for p in f.points] for f in shown]
    network = lines(
        [
            *((f"{_name(f)} while sending", r, [p.network_peak_bytes_per_s / 1e9 for p in f.points], t)
              for f, r, t in zip(shown, rates, texts)),
            *((f"{_name(f)} mean", r, [p.network_mean_bytes_per_s / 1e9 for p in f.points], t)
              for f, r, t in zip(shown, rates, texts)),
        ],
        pairs=len(shown),
        mode="markers",
    )  # fmt: skip
    return [
        Chart(
            name="latency",
            title="Interactivity against throughput",
            note="Each point is the best placement at its latency; hover for its widths. Low and right is better.",
            figure=layout(lines(series(milliseconds)), throughput, latency, log_x=True, log_y=True),
        ),
        Chart(
            name="energy",
            title="Energy per query",
            note="Dynamic energy sums bytes and products; all-in adds idle power, node, network and cooling (dotted).",
            figure=layout(energy, throughput, "joules per query", log_x=True, log_y=True),
        ),
        Chart(
            name="memory",
            title="Fast memory per GPU",
            note="Weights, KV of all streams in flight, recurrent state and working buffers at the peak; no slack.",
            figure=layout(lines(series(memory), mode="markers"), throughput, "GB per GPU", log_x=True),
        ),
        Chart(
            name="network",
            title="Network per GPU",
            note="The rate while transfers run, and averaged over the pass (open marks): decode sends in bursts.",
            figure=layout(network, throughput, "GB/s per GPU", log_x=True, log_y=True),
        ),
    ]


def layer_chart(slices: list[Slice], kinds: Sequence[str], label: str) -> Chart:
    """Return one layer of each attention kind as a Gantt (Figures 16 and 17)."""
    rows = [
        (f"{kind} layer", [(b.name, b.part, b.start_s, b.seconds) for b in layer_bars(slices, kind)])
        for kind in reversed(kinds)
    ]
    return Chart(
        name="layer",
        title="One layer in time",
        note=f"{label}. Exposed time only: what overlaps is not drawn twice.",
        figure=gantt(rows),
    )


def intensity_chart(rows: Sequence[Intensity]) -> Chart:
    """Return the intensity of the regimes' parts beside the machine's balance (Figures 6 and 10)."""
    figure = go.Figure()
    for name, values in (
        ("attention core", [r.attention_core for r in rows]),
        ("projections", [r.projections for r in rows]),
        ("routed experts", [r.experts for r in rows]),
    ):
        colour = COLOURS[len(figure.data)]
        figure.add_trace(go.Bar(x=[r.regime for r in rows], y=values, name=name, marker_color=colour))
    figure.add_hline(y=rows[0].ridge, line_dash="dot")
    return Chart(
        name="intensity",
        title="Arithmetic intensity by regime",
        note="Operations per byte. Above the dotted line (fp8 rate over memory rate) the cores are the limit.",
        figure=layout(figure, "", "FLOP per byte", log_y=True, named="x"),
    )


def sharing_chart(model: Model) -> Chart:
    """Return expert sharing against the tokens of a pass (Figure 21)."""
    tokens = [2.0**i for i in range(13)]
    rows = sharing(model, [int(t) for t in tokens])
    k = model.experts_per_token
    active = [f"{r.touched_ratio:.0%} of the experts active" for r in rows]
    series: list[tuple[str, list[float], list[float], list[str]]] = [
        ("uniform routing", tokens, [r.tokens_per_expert for r in rows], active),
        ("skewed routing (Zipf 0.8)", tokens, [r.tokens * k / r.distinct_skewed for r in rows], []),
    ]
    return Chart(
        name="sharing",
        title="Tokens that share an expert",
        note=f"{model.name}: {model.experts} experts, {k} per token. Sharing grows slowly until all are active.",
        figure=layout(lines(series), "tokens in the pass", "tokens per active expert", log_x=True, log_y=True),
    )


def expert_chart(model: Model) -> Chart:
    """Return one expert's intensity against its tokens (essay, section 15, Figure 20)."""
    n = np.geomspace(1, 16_384, 60)
    fmt = model.precision.expert_format
    values = expert_intensity(model, n, fmt.bytes_per_value, model.precision.dispatch_bytes)
    figure = lines([(f"{model.name}, {fmt.name}", n.tolist(), values.tolist(), [])])
    return Chart(
        name="expert",
        title="One expert's intensity",
        note="Each weight is loaded once for all tokens of the bucket; activations flatten the gain at the end.",
        figure=layout(figure, "tokens at the expert", "FLOP per byte", log_x=True, log_y=True),
    )


def faster_chart(rows: Sequence[FasterMemory], label: str) -> Chart:
    """Return the speed-up of midfill and decode with faster memory (Figure 7)."""
    ratios = [r.ratio for r in rows]
    figure = lines(
        [
            ("decode", ratios, [r.decode_gain_ratio for r in rows], []),
            ("midfill", ratios, [r.midfill_gain_ratio for r in rows], []),
        ]
    )
    return Chart(
        name="faster",
        title="Faster memory",
        note=f"{label}. Speed-up over today's memory, everything else unchanged.",
        figure=layout(figure, "memory rate over today's", "speed-up"),
    )


def value_chart(rows: Sequence[MemoryValue], label: str) -> Chart:
    """Return value per GPU-hour against capacity, one line per memory rate (Figure 23)."""
    series: list[tuple[str, list[float], list[float], list[str]]] = []
    for rate in sorted({r.hbm_bytes_per_s for r in rows}):
        at_rate = [r for r in rows if r.hbm_bytes_per_s == rate]
        texts = [f"batch {r.batch}, {r.tpot_s * 1e3:.1f} ms a token" if r.batch else "does not fit" for r in at_rate]
        name = f"{rate / 1e12:.1f} TB/s"
        series.append((name, [r.capacity_bytes / 1e9 for r in at_rate], [r.value_per_gpu_hour for r in at_rate], texts))
    return Chart(
        name="value",
        title="Value per GPU-hour against fast memory",
        note=f"{label}. Nothing until the working set fits, then steep, then a ceiling set by bandwidth and compute.",
        figure=layout(lines(series), "fast memory per GPU (GB)", "value per GPU-hour"),
    )
