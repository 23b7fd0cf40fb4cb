"""`steadyflow plan`: placements of a model on hardware, their frontiers, and the figures behind them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from scenarios.cli.common import print_json
from scenarios.cli.options import at_least_one, new_file, not_negative, positive
from scenarios.cli.plan_fit import fit
from scenarios.cli.plan_tables import (
    print_frontier,
    print_layer,
    print_models,
    print_validation,
    wide_console,
    write_page,
)
from scenarios.errors import UserError, nearest

app = typer.Typer(
    help="Walk placements of a model on accelerators; show frontiers of latency, throughput, energy.",
    epilog="Example: steadyflow plan --model kimi-k3 --hardware gb200-nvl72 --gpus 16..64",
)

app.command()(fit)

ModelName = Annotated[str | None, typer.Option("--model", help="A model preset, such as kimi-k3.")]
ConfigPath = Annotated[Path | None, typer.Option("--config", help="A Hugging Face config.json instead of a preset.")]
HardwareNames = Annotated[str, typer.Option("--hardware", help="A hardware preset, or several with commas.")]
EngineName = Annotated[str, typer.Option("--engine", help="Serving software that sets the launch costs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON only.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write an HTML page there.", callback=new_file)]
PlacementText = Annotated[str, typer.Option("--placement", help="Widths, such as pp1tp1dp64ep64.")]
DEFAULT_ENGINE = "fused-2026h2"


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
    draft_tokens: Annotated[int, typer.Option(help="Speculated tokens verified in a pass.", min=0, max=64)] = 0,
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
    precision: Annotated[
        str | None, typer.Option(help="Format of all weights, instead of the checkpoint's own.")
    ] = None,
    kv_format: Annotated[str | None, typer.Option(help="Format of the KV cache: bf16, fp8 or nvfp4.")] = None,
    hot_ratio: Annotated[
        float, typer.Option(help="Load of the busiest expert rank over the mean.", min=1.0, max=100.0)
    ] = 1.1,
    explain: Annotated[str | None, typer.Option(help="A placement whose layer to take apart.")] = None,
    batch: Annotated[float, typer.Option(help="Sequences per rank for --explain.", callback=positive)] = 1.0,
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Enumerate placements that fit and print the Pareto frontier of latency against throughput."""
    if context.invoked_subcommand is not None:
        return
    from scenarios.plan import resolve
    from scenarios.plan.frontier import REGIMES, Question

    if regime not in (*REGIMES, "all"):
        raise UserError(f"--regime {regime} is unknown{nearest(regime, REGIMES)}; known: {', '.join(REGIMES)}, all")
    _refuse_sizes(positions, new, output, draft_tokens, accepted_tokens, batch, gpu_hour_price)
    chosen = resolve.in_formats(resolve.model_named(model, config), precision, kv_format)
    machines, software = resolve.hardware_named(hardware), resolve.engine_named(engine)
    questions = [
        Question(
            regime=name,
            context=positions,
            new=new,
            output=output,
            gpus=resolve.gpu_range(gpus),
            draft_tokens=draft_tokens,
            accepted_tokens=accepted_tokens,
            gpu_hour_price=gpu_hour_price,
            widest_tp=max_tp,
            deepest_pp=max_pp,
            latency_limit_s=max_latency_s,
            hot_ratio=hot_ratio,
        )
        for name in (REGIMES if regime == "all" else (regime,))
    ]
    if explain is not None:
        _explain(chosen, machines[0], software, questions[0], explain, batch, as_json, out)
        return
    _frontiers(chosen, machines, software, questions, as_json, out)


def _refuse_sizes(
    positions: int, new: int, output: int, draft_tokens: int, accepted_tokens: float, batch: float, price: float | None
) -> None:
    for flag, value in (("--context", positions), ("--new", new), ("--output", output)):
        if value < 1:
            raise UserError(f"{flag} {value}: at least 1 would do")
    if accepted_tokens > 1 + draft_tokens:
        raise UserError(f"--accepted-tokens {accepted_tokens:g}: at most 1 + --draft-tokens = {1 + draft_tokens}")
    for flag, number, most in (("--batch", batch, 1e6), ("--gpu-hour-price", price or 0.0, 1e6)):
        if number > most:
            raise UserError(f"{flag} {number:g}: at most {most:g} would do")


def _frontiers(
    model: Any, machines: list[Any], engine: Any, questions: list[Any], as_json: bool, out: Path | None
) -> None:
    # Model, Hardware, Engine and Question: their modules load numpy, which `--help` need not wait for.
    from plant.model.placement import PlacementError
    from scenarios.plan.frontier import as_json as plain
    from scenarios.plan.frontier import plan_frontier

    frontiers = []
    for machine in machines:
        for question in questions:
            try:
                frontiers.append(plan_frontier(model, machine, engine, question))
            except PlacementError as problem:
                raise UserError(str(problem)) from problem
    for frontier in frontiers:
        if not frontier.points:
            reasons = "; ".join(sorted(frontier.refusal_examples.values())[:2]) or "no width in --gpus was tried"
            if frontier.cloud:  # something fits, and all of it is too slow
                fastest_s = min(point.latency_s for point in frontier.cloud)
                reasons = f"the fastest of {frontier.evaluated} points takes {fastest_s:.3g} s; raise --max-latency-s"
            raise UserError(
                f"nothing fits: {frontier.model.name} on {frontier.hardware.name}, {frontier.question.regime}: "
                + reasons
            )
    if as_json:
        rows = [plain(frontier) for frontier in frontiers]
        print_json(rows[0] if len(rows) == 1 else {"frontiers": rows})
    else:
        for frontier in frontiers:
            print_frontier(frontier)
    if out is not None:
        from scenarios.plan.figures import frontier_charts

        names = ", ".join(machine.name for machine in machines)
        lead = f"Placements on {names}, {questions[0].gpus.start} to {questions[0].gpus.stop - 1} GPUs a worker. "
        lead += "A model of hardware and software, not a measurement."
        write_page(out, f"{model.name}: frontiers", lead, frontier_charts(frontiers))


def _explain(
    model: Any, machine: Any, engine: Any, question: Any, text: str, batch: float, as_json: bool, out: Path | None
) -> None:
    # As for `_frontiers`.
    from plant.model.memory import memory, require_fit
    from plant.model.placement import PlacementError, check_placement, parse_placement
    from plant.model.regimes import setting_of
    from scenarios.plan.explain import explain as slices_of

    fill = question.regime != "decode"
    cached = 0 if question.regime == "prefill" else question.context
    new = question.new if fill else 1 + question.draft_tokens
    try:
        place = replace(parse_placement(text), hot_ratio=question.hot_ratio)
        check_placement(model, machine, place)
        setting = setting_of(model, machine, engine, place)
        need = memory(setting, batch, float(cached + new), chunk_tokens=int(min(new * batch, 8192)))
        require_fit(setting, need)
    except PlacementError as problem:
        raise UserError(str(problem)) from problem
    slices = slices_of(setting, batch, float(new), float(cached), fill=fill)
    kinds = [group.label for group in model.attention]
    if as_json:
        rows = [{name: getattr(s, name) for name in s.__slots__} for s in slices]
        print_json({"placement": place.label(), "operations": rows, "memory_bytes": need.classes()})
    else:
        print_layer(slices, need, kinds, f"{model.name}, {place.label()} on {machine.name}: one pass")
    if out is not None:
        from scenarios.plan.figures import layer_chart

        label = f"{model.name}, {place.label()} on {machine.name}, {question.regime}, batch {batch:g}"
        write_page(out, f"{model.name}: one layer", label, [layer_chart(slices, kinds, label)])


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
        print_json(as_plain(points))
        return
    if markdown:
        typer.echo(as_markdown(points), nl=False)
        return
    print_validation(points, as_plain(points))


@app.command()
def models(as_json: AsJson = False) -> None:
    """List model presets with derived and published parameter counts.

    Example: steadyflow plan models
    """
    from scenarios.plan.counts import count_rows

    rows = count_rows()
    if as_json:
        print_json(rows)
        return
    print_models(rows)


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
    from scenarios.plan.studies import memory_view

    view = memory_view(model if config is None else None, config, hardware, engine, placement, positions)
    if as_json:
        print_json(view.plain)
    else:
        view.print(wide_console())
    if out is not None:
        write_page(out, view.title, view.lead, view.charts())


@app.command()
def regimes(
    model: ModelName = "kimi-k3",
    config: ConfigPath = None,
    hardware: HardwareNames = "gb200-nvl72",
    engine: EngineName = DEFAULT_ENGINE,
    placement: PlacementText = "pp1tp1dp16ep16",
    positions: Annotated[int, typer.Option("--context", help="Cached positions.", min=1)] = 131_072,
    new: Annotated[int, typer.Option(help="New tokens of a fill.", min=1)] = 1024,
    batch: Annotated[int, typer.Option(help="Sequences per rank in decode.", min=1, max=1_000_000)] = 4,
    as_json: AsJson = False,
    out: Out = None,
) -> None:
    """Show intensity, expert sharing and the effect of faster memory (Figures 6, 7, 10, 20, 21).

    Example: steadyflow plan regimes --model kimi-k3 --hardware gb200-nvl72
    """
    from scenarios.plan.studies import regimes_view

    view = regimes_view(model if config is None else None, config, hardware, engine, placement, positions, new, batch)
    if as_json:
        print_json(view.plain)
    else:
        view.print(wide_console())
    if out is not None:
        write_page(out, view.title, view.lead, view.charts())
