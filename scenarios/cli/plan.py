"""`steadyflow plan`: placements of a model on hardware, their frontiers, and the figures behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from scenarios.cli.options import at_least_one, new_file, not_negative, positive
from scenarios.errors import UserError, nearest

app = typer.Typer(
    help="Walk placements of a model on accelerators; show frontiers of latency, throughput, energy.",
    epilog="Example: steadyflow plan --model kimi-k3 --hardware gb200-nvl72 --gpus 16..64",
)

ModelName = Annotated[str | None, typer.Option("--model", help="A model preset, such as kimi-k3.")]
ConfigPath = Annotated[Path | None, typer.Option("--config", help="A Hugging Face config.json instead of a preset.")]
HardwareNames = Annotated[str, typer.Option("--hardware", help="A hardware preset, or several with commas.")]
EngineName = Annotated[str, typer.Option("--engine", help="Serving software that sets the launch costs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write an HTML page there.", callback=new_file)]
PlacementText = Annotated[str, typer.Option("--placement", help="Widths, such as pp1tp1dp64ep64.")]
DEFAULT_ENGINE = "fused-2026h2"


def _console() -> Console:
    """Return a console wide enough for the tables; a narrower terminal wraps lines instead of losing columns."""
    console = Console()
    console.width = max(console.width, 136)
    return console


def _print_json(value: object) -> None:
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode())


def _page(out: Path, title: str, lead: str, charts: list[Any], tables: tuple[str, ...] = ()) -> None:
    # Charts are plan.page.Chart; plotly is imported only when a page is asked for, hence Any.
    from scenarios.plan.page import page, write_page
    from scenarios.report.style import CSS

    typer.echo(f"page: {write_page(out, page(title, lead, charts, CSS, tables))}")


@app.callback(invoke_without_command=True)
def plan(
    context: typer.Context,
    model: ModelName = None,
    config: ConfigPath = None,
    hardware: HardwareNames = "gb200-nvl72",
    engine: EngineName = DEFAULT_ENGINE,
    gpus: Annotated[str, typer.Option(help="Accelerators of a worker: 32 or 16..64.")] = "16..64",
    regime: Annotated[str, typer.Option(help="decode, midfill, prefill, or all.")] = "decode",
    positions: Annotated[int, typer.Option("--context", help="Cached positions (decode, midfill).")] = 32_768,
    new: Annotated[int, typer.Option(help="New tokens of a fill.")] = 8192,
    output: Annotated[int, typer.Option(help="Output tokens of a query.")] = 1000,
    draft_tokens: Annotated[int, typer.Option(help="Speculated tokens verified in a pass.", min=0)] = 0,
    accepted_tokens: Annotated[
        float, typer.Option(help="Output tokens of a pass on average.", callback=at_least_one)
    ] = 1.0,
    max_tp: Annotated[
        int | None, typer.Option(help="Widest tensor group searched (8 in decode, 4 in fills).", min=1)
    ] = None,
    max_pp: Annotated[int, typer.Option(help="Deepest pipeline searched.", min=1)] = 32,
    max_latency_s: Annotated[
        float | None, typer.Option(help="Leave out points slower than this.", callback=positive)
    ] = None,
    gpu_hour_price: Annotated[
        float | None, typer.Option(help="Adds cost per turn and million tokens.", callback=not_negative)
    ] = None,
    explain: Annotated[str | None, typer.Option(help="A placement whose layer to take apart.")] = None,
    batch: Annotated[float, typer.Option(help="Sequences per rank for --explain.", callback=positive)] = 1.0,
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Enumerate placements that fit and print the Pareto frontier of latency against throughput."""
    if context.invoked_subcommand is not None:
        return
    from scenarios.plan import ask
    from scenarios.plan.frontier import REGIMES, Question

    if regime not in (*REGIMES, "all"):
        raise UserError(f"--regime {regime} is unknown{nearest(regime, REGIMES)}; known: {', '.join(REGIMES)}, all")
    for flag, value in (("--context", positions), ("--new", new), ("--output", output)):
        if value < 1:
            raise UserError(f"{flag} {value}: at least 1 would do")
    chosen = ask.model_named(model, config)
    machines, software = ask.hardware_named(hardware), ask.engine_named(engine)
    questions = [
        Question(
            regime=name,
            context=positions,
            new=new,
            output=output,
            gpus=ask.gpu_range(gpus),
            draft_tokens=draft_tokens,
            accepted_tokens=accepted_tokens,
            gpu_hour_price=gpu_hour_price,
            widest_tp=max_tp,
            deepest_pp=max_pp,
            latency_limit_s=max_latency_s,
        )
        for name in (REGIMES if regime == "all" else (regime,))
    ]
    if explain is not None:
        _explain(chosen, machines[0], software, questions[0], explain, batch, as_json, out)
        return
    _frontiers(chosen, machines, software, questions, as_json, out)


def _frontiers(
    model: Any, machines: list[Any], engine: Any, questions: list[Any], as_json: bool, out: Path | None
) -> None:
    # Model, Hardware, Engine and Question: their modules load numpy, which `--help` need not wait for.
    from plant.placement import PlacementError
    from scenarios.plan.frontier import as_json as plain
    from scenarios.plan.frontier import plan_frontier

    found = []
    for machine in machines:
        for question in questions:
            try:
                found.append(plan_frontier(model, machine, engine, question))
            except PlacementError as problem:
                raise UserError(str(problem)) from problem
    for frontier in found:
        if not frontier.points:
            reasons = "; ".join(sorted(frontier.refusal_examples.values())[:2]) or "no width in --gpus was tried"
            raise UserError(
                f"nothing fits: {frontier.model.name} on {frontier.hardware.name}, {frontier.question.regime}: "
                + reasons
            )
    if as_json:
        rows = [plain(frontier) for frontier in found]
        _print_json(rows[0] if len(rows) == 1 else {"frontiers": rows})
    else:
        for frontier in found:
            _print_frontier(frontier)
    if out is not None:
        from scenarios.plan.figures import frontier_charts

        names = ", ".join(machine.name for machine in machines)
        lead = f"Placements on {names}, {questions[0].gpus.start} to {questions[0].gpus.stop - 1} GPUs a worker. "
        lead += "A model of hardware and software, not a measurement."
        _page(out, f"{model.name}: frontiers", lead, frontier_charts(found))


def _print_frontier(frontier: Any) -> None:
    # scenarios.plan.frontier.Frontier
    from scenarios.plan.frontier import as_json as plain

    question = frontier.question
    name = "ms/token" if question.regime == "decode" else "first token ms"
    title = f"{frontier.model.name} on {frontier.hardware.name}: {question.regime}"
    if not frontier.hardware.verified:
        title += " (hardware unverified)"
    table = Table(title=title, title_justify="left")
    heads = ["placement", "GPUs", "batch", "pieces", name, "tok/s/GPU", "J/query", "all-in J", "HBM GB", "net GB/s"]
    price = question.gpu_hour_price
    if price is not None:
        heads += ["per Mtok", "per turn", "value/h"] if question.regime == "decode" else ["per Mtok", "per turn"]
    for i, head in enumerate(heads):
        table.add_column(head, justify="left" if i == 0 else "right", no_wrap=i == 0)
    points = frontier.points
    step = max(len(points) // 24, 1)
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
    _console().print(table)
    refused = ", ".join(f"{reason} {count}" for reason, count in sorted(frontier.refused.items())) or "none"
    typer.echo(f"{frontier.evaluated} points evaluated, {len(points)} on the frontier; placements refused: {refused}")


def _explain(
    model: Any, machine: Any, engine: Any, question: Any, text: str, batch: float, as_json: bool, out: Path | None
) -> None:
    # As for `_frontiers`.
    from plant.memory import memory, require_fit
    from plant.placement import PlacementError, check_placement, parse_placement
    from plant.regimes import setting_of
    from scenarios.plan.explain import explain as slices_of

    fill = question.regime != "decode"
    cached = 0 if question.regime == "prefill" else question.context
    new = question.new if fill else 1 + question.draft_tokens
    try:
        place = parse_placement(text)
        check_placement(model, machine, place)
        setting = setting_of(model, machine, engine, place)
        need = memory(setting, batch, float(cached + new), chunk_tokens=int(min(new * batch, 8192)))
        require_fit(setting, need)
    except PlacementError as problem:
        raise UserError(str(problem)) from problem
    slices = slices_of(setting, batch, float(new), float(cached), fill=fill)
    if as_json:
        rows = [{name: getattr(s, name) for name in s.__slots__} for s in slices]
        _print_json({"placement": place.label(), "operations": rows, "memory_bytes": need.classes()})
    else:
        table = Table(title=f"{model.name}, {place.label()} on {machine.name}: one pass", title_justify="left")
        for i, head in enumerate(("operation", "layers", "us/layer", "ms", "share", "FLOP/B", "sent kB")):
            table.add_column(head, justify="left" if i == 0 else "right", no_wrap=i == 0)
        for s in slices:
            intensity = "" if s.flop_per_byte is None else f"{s.flop_per_byte:.1f}"
            sent = f"{s.link_bytes / 1e3:.1f}" if s.link_bytes else ""
            table.add_row(s.name, str(s.layers), f"{s.seconds * 1e6:.2f}", f"{s.total_s * 1e3:.3f}",
                          f"{s.share_ratio:.1%}", intensity, sent)  # fmt: skip
        _console().print(table)
        _print_layer(slices, [group.label for group in model.attention])
        held = ", ".join(f"{name} {size / 1e9:.1f} GB" for name, size in need.classes().items())
        typer.echo(f"memory of the fullest GPU: {held}")
    if out is not None:
        from scenarios.plan.figures import layer_chart

        kinds = [group.label for group in model.attention]
        label = f"{model.name}, {place.label()} on {machine.name}, {question.regime}, batch {batch:g}"
        _page(out, f"{model.name}: one layer", label, [layer_chart(slices, kinds, label)])


def _print_layer(slices: Any, kinds: list[str]) -> None:
    # list[scenarios.plan.explain.Slice]
    from scenarios.plan.explain import layer_bars

    width = 72
    for kind in kinds:
        bars = layer_bars(slices, kind)
        whole = bars[-1].start_s + bars[-1].seconds
        typer.echo(f"{kind} layer, {whole * 1e6:.1f} us:")
        for bar in bars:
            start, end = round(bar.start_s / whole * width), round((bar.start_s + bar.seconds) / whole * width)
            typer.echo(f"  {bar.name:20s}{' ' * start}{'█' * max(end - start, 1)} {bar.seconds * 1e6:.1f}")


@app.command()
def validate(
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option(help="Print the Markdown of docs/validation.md.")] = False,
) -> None:
    """Compare the model with public measurements, row by row.

    Example: steadyflow plan validate
    """
    from scenarios.plan.validate import as_markdown, as_plain, predictions

    points = predictions()
    if as_json:
        _print_json(as_plain(points))
        return
    if markdown:
        typer.echo(as_markdown(points), nl=False)
        return
    table = Table(title="Public measurements", title_justify="left")
    for i, head in enumerate(("row", "kind", "measured", "model", "error", "set")):
        table.add_column(head, justify="left" if i < 2 else "right")
    for p in points:
        cells = (p.row.name, p.row.kind, p.text(p.row.measured), p.text(p.predicted), f"{p.error_ratio:+.1%}")
        table.add_row(*cells, "*" if p.row.sets else "")
    _console().print(table)
    for name, value in as_plain(points).items():
        if name != "rows":
            typer.echo(f"{name}: {value}")


@app.command()
def models(as_json: AsJson = False) -> None:
    """List model presets with derived and published parameter counts.

    Example: steadyflow plan models
    """
    from scenarios.plan.counts import count_rows

    rows = count_rows()
    if as_json:
        _print_json(rows)
        return
    table = Table(title="Parameters: active counts the head, not the embedding", title_justify="left")
    for i, head in enumerate(("model", "total B", "published", "error", "active B", "published", "error", "KV kB/tok")):
        table.add_column(head, justify="left" if i == 0 else "right", no_wrap=i == 0)
    for r in rows:
        table.add_row(
            str(r["model"]), f"{r['total'] / 1e9:.2f}", f"{r['published_total'] / 1e9:.2f}", f"{r['total_error']:+.3%}",
            f"{r['active'] / 1e9:.2f}", f"{r['published_active'] / 1e9:.2f}", f"{r['active_error']:+.1%}",
            f"{r['kv_bytes_per_token'] / 1e3:.1f}",
        )  # fmt: skip
    _console().print(table)


@app.command()
def memory(
    model: ModelName = "kimi-k3",
    config: ConfigPath = None,
    hardware: HardwareNames = "gb200-nvl72",
    engine: EngineName = DEFAULT_ENGINE,
    placement: PlacementText = "pp1tp1dp64ep64",
    positions: Annotated[int, typer.Option("--context", help="Positions of each sequence.", min=1)] = 131_072,
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Show value per GPU-hour against capacity and rate of fast memory (Figure 23).

    Example: steadyflow plan memory --model kimi-k3 --hardware gb200-nvl72
    """
    from scenarios.plan.desk import memory_view

    view = memory_view(model if config is None else None, config, hardware, engine, placement, positions)
    if as_json:
        _print_json(view.plain)
    else:
        view.print(_console())
    if out is not None:
        _page(out, view.title, view.lead, view.charts())


@app.command()
def regimes(
    model: ModelName = "kimi-k3",
    config: ConfigPath = None,
    hardware: HardwareNames = "gb200-nvl72",
    engine: EngineName = DEFAULT_ENGINE,
    placement: PlacementText = "pp1tp1dp16ep16",
    positions: Annotated[int, typer.Option("--context", help="Cached positions.", min=1)] = 131_072,
    new: Annotated[int, typer.Option(help="New tokens of a fill.", min=1)] = 1024,
    batch: Annotated[int, typer.Option(help="Sequences per rank in decode.", min=1)] = 4,
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Show intensity, expert sharing and the effect of faster memory (Figures 6, 7, 10, 20, 21).

    Example: steadyflow plan regimes --model kimi-k3 --hardware gb200-nvl72
    """
    from scenarios.plan.desk import regimes_view

    view = regimes_view(model if config is None else None, config, hardware, engine, placement, positions, new, batch)
    if as_json:
        _print_json(view.plain)
    else:
        view.print(_console())
    if out is not None:
        _page(out, view.title, view.lead, view.charts())
