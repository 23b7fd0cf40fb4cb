"""What `steadyflow plan` shows on the terminal: tables of frontiers, layers, measurements and models; and its pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from scenarios.report.terminal import terminal

# The figures come as Any: their classes live in modules that load numpy, which `--help` need not wait for.
ROWS_SHOWN = 24
LAYER_WIDTH = 72


def wide_console() -> Console:
    """Return a console wide enough for the tables; a narrower terminal wraps lines instead of losing columns."""
    console = terminal()
    console.width = max(console.width, 136)
    return console


def write_page(out: Path, title: str, lead: str, charts: list[Any]) -> None:
    """Write a page of charts (`plan.page.Chart`), and say where it is."""
    from scenarios.plan import page  # plotly is imported only when a page is asked for

    typer.echo(f"page: {page.write_page(out, title, lead, charts)}")


def print_frontier(frontier: Any) -> None:
    """Print some 24 points of a `plan.frontier.Frontier`, and how many were tried and refused."""
    from scenarios.plan.frontier import as_json as plain

    question = frontier.question
    name = "ms/token" if question.regime == "decode" else "first token ms"
    title = f"{frontier.model.name} on {frontier.hardware.name}: {question.regime}"
    if not frontier.hardware.verified:
        title += " (hardware not calibrated)"
    heads = [
        "placement",
        "GPUs",
        "batch/rank",
        "pieces",
        name,
        "tok/s/GPU",
        "J/query",
        "all-in J",
        "HBM GB",
        "net GB/s",
    ]
    price = question.gpu_hour_price
    if price is not None:
        heads += ["per Mtok", "per turn", "value/h"] if question.regime == "decode" else ["per Mtok", "per turn"]
    table = _table(title, heads)
    points = frontier.points
    step = max(len(points) // ROWS_SHOWN, 1)
    rows: Any = plain(frontier)["frontier"]
    for p, row in [*zip(points[:-1:step], rows[:-1:step]), (points[-1], rows[-1])]:
        cells = [p.placement.label(), str(p.gpus), str(p.batch), str(p.chunks), f"{p.latency_s * 1e3:.2f}"]
        cells += [f"{p.tokens_per_s_per_gpu:.0f}", f"{p.energy_j_per_query:.0f}", f"{p.energy_all_in_j_per_query:.0f}"]
        cells += [f"{p.hbm_bytes_per_gpu / 1e9:.0f}", f"{p.network_mean_bytes_per_s / 1e9:.1f}"]
        if price is not None:
            cells += [
                f"{row[name]:.3g}" for name in ("cost_per_mtoken", "cost_per_turn", "value_per_gpu_hour") if name in row
            ]
        table.add_row(*cells)
    wide_console().print(table)
    refused = ", ".join(f"{reason} {count}" for reason, count in sorted(frontier.refused.items())) or "none"
    shown = table.row_count
    some = "" if shown == len(points) else f", {shown} of them shown (--json has all)"
    typer.echo(f"{frontier.evaluated} points evaluated, {len(points)} on the frontier{some}")
    typer.echo(f"batch/rank: sequences per data-parallel rank and micro-batch; placements refused: {refused}")


def print_layer(slices: Any, need: Any, kinds: list[str], title: str) -> None:
    """Print one pass taken apart (`plan.explain.Slice`), a bar a kind of layer, and what memory holds."""
    table = _table(title, ("operation", "layers", "us/layer", "ms", "share", "FLOP/B", "sent kB"))
    for s in slices:
        intensity = "" if s.flop_per_byte is None else f"{s.flop_per_byte:.1f}"
        sent = f"{s.link_bytes / 1e3:.1f}" if s.link_bytes else ""
        table.add_row(s.name, str(s.layers), f"{s.seconds * 1e6:.2f}", f"{s.total_s * 1e3:.3f}",
                      f"{s.share_ratio:.1%}", intensity, sent)  # fmt: skip
    wide_console().print(table)
    for kind in kinds:
        _print_bars(slices, kind)
    held = ", ".join(f"{name} {size / 1e9:.1f} GB" for name, size in need.classes().items())
    typer.echo(f"memory of the fullest GPU: {held}")


def _print_bars(slices: Any, kind: str) -> None:
    from scenarios.plan.explain import layer_bars

    bars = layer_bars(slices, kind)
    layer_s = bars[-1].start_s + bars[-1].seconds
    typer.echo(f"{kind} layer, {layer_s * 1e6:.1f} us:")
    for bar in bars:
        start, end = (round(at_s / layer_s * LAYER_WIDTH) for at_s in (bar.start_s, bar.start_s + bar.seconds))
        typer.echo(f"  {bar.name:20s}{' ' * start}{'█' * max(end - start, 1)} {bar.seconds * 1e6:.1f}")


def print_validation(points: Any, totals: dict[str, Any]) -> None:
    """Print measured and predicted (`plan.validate`) side by side; `*` marks rows that set a figure of the model."""
    table = Table(title="Public measurements", title_justify="left")
    for i, head in enumerate(("row", "kind", "measured", "model", "error", "set")):
        table.add_column(head, justify="left" if i < 2 else "right")
    for p in points:
        cells = (p.row.name, p.row.kind, p.text(p.row.measured), p.text(p.predicted), f"{p.error_ratio:+.1%}")
        table.add_row(*cells, "*" if p.row.sets else "")
    wide_console().print(table)
    for name, value in totals.items():
        if name != "rows":
            typer.echo(f"{name}: {value}")


def print_models(rows: Any) -> None:
    """Print model presets (`plan.counts.count_rows`) with derived and published parameter counts."""
    heads = ("model", "total B", "published", "error", "active B", "published", "error", "KV kB/tok")
    table = _table("Parameters: active counts the head, not the embedding", heads)
    for r in rows:
        table.add_row(
            str(r["model"]), f"{r['total'] / 1e9:.2f}", f"{r['published_total'] / 1e9:.2f}", f"{r['total_error']:+.3%}",
            f"{r['active'] / 1e9:.2f}", f"{r['published_active'] / 1e9:.2f}", f"{r['active_error']:+.1%}",
            f"{r['kv_bytes_per_token'] / 1e3:.1f}",
        )  # fmt: skip
    wide_console().print(table)


def _table(title: str, heads: list[str] | tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i == 0 else "right", no_wrap=i == 0)
    return table
