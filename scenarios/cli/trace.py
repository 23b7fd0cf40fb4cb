"""`steadyflow trace`: `inspect` what a trace is, preview what load it makes (`lanes`), `convert` it, `generate` one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from scenarios.cli.options import LARGEST_SEED, LONGEST_S, new_file, new_output
from scenarios.errors import UserError

app = typer.Typer(
    help="Inspect, convert and generate traces.",
    epilog="Example: steadyflow trace generate agentx sessions.parquet",
    no_args_is_help=True,
)

Trace = Annotated[Path, typer.Argument(help="A trace: a file (plain, .gz or .zst) or a directory.")]
Form = Annotated[str, typer.Option("--format", help="The format, or `auto` to find it.")]
OnErrorOption = Annotated[
    Literal["raise", "repair", "skip"], typer.Option(help="What to do with a defect: stop, mend and count, leave out.")
]
Clock = Annotated[
    Literal["auto", "relative", "absolute"], typer.Option(help="The base of sub-agents' inner times (Weka).")
]
Block = Annotated[int | None, typer.Option(help="Tokens of a block, if other than the format's.", min=1)]
Delta = Annotated[bool, typer.Option("--delta", help="Input lengths are only the new part (Mooncake).")]
Doubles = Annotated[bool, typer.Option("--drop-doubles", help="Leave out requests sent twice, streamed and plain.")]
Columns = Annotated[
    str | None, typer.Option(help="Read any table: arrived=COLUMN,input=COLUMN,output=COLUMN[,session=COLUMN,unit=ms].")
]
Unit = Annotated[
    Literal["s", "ms", "us", "ns"] | None,
    typer.Option("--time-unit", help="The unit of stamps and waits, if other than the format's."),
]
Spread = Annotated[bool, typer.Option("--spread-stamps", help="Draw starts within the grain of a coarse clock.")]
Horizon = Annotated[float, typer.Option(help="How long to generate (ServeGen), seconds.", min=1.0, max=LONGEST_S)]
Seed = Annotated[int, typer.Option(help="For formats that are generators.", min=0, max=LARGEST_SEED)]


def _read(path: Path, form: str, **options: Any) -> Any:  # Any: a Corpus; its module loads numpy and pyarrow
    from scenarios.workloads.readers.detect import read
    from scenarios.workloads.readers.rows import ReadOptions

    return read(path, form=form, options=ReadOptions(**options))


@app.command()
def inspect(
    path: Trace,
    form: Form = "auto",
    on_error: OnErrorOption = "repair",
    subagent_clock: Clock = "auto",
    block_tokens: Block = None,
    delta: Delta = False,
    drop_doubles: Doubles = False,
    columns: Columns = None,
    time_unit: Unit = None,
    spread_stamps: Spread = False,
    horizon_s: Horizon = 3_600.0,
    seed: Seed = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write a page that shows the conversations.", callback=new_file)
    ] = None,
    show: Annotated[list[str] | None, typer.Option(help="A conversation to draw on the page; repeatable.")] = None,
) -> None:
    """Describe a trace: digest, counts, quantiles, theoretical hit, new tokens, burstiness, and the dirt found.

    Example: steadyflow trace inspect sessions.parquet --html sessions.html
    """
    from scenarios.report.trace_table import print_description
    from scenarios.trace.inspect import inspect as described

    corpus = _read(
        path,
        form,
        on_error=on_error,
        subagent_clock=subagent_clock,
        block_tokens=block_tokens,
        delta=delta,
        drop_doubles=drop_doubles,
        columns=columns,
        time_unit=time_unit,
        spread_stamps=spread_stamps,
        horizon_s=horizon_s,
        seed=seed,
    )
    figures = described(corpus)
    if html is not None:
        from scenarios.report.explorer import write_explorer

        write_explorer(corpus, figures, html, show or ())
    if json:
        import orjson

        typer.echo(orjson.dumps(figures, option=orjson.OPT_INDENT_2).decode())
    else:
        print_description(figures)
        if html is not None:
            typer.echo(f"page: {html}")


@app.command()
def lanes(
    path: Annotated[Path | None, typer.Argument(help="A trace; without one, generated sessions.")] = None,
    count: Annotated[int, typer.Option("--lanes", help="Live session trees.", min=1)] = 64,
    idle_cap_s: Annotated[
        float, typer.Option(help="The longest idle time of a session; 0: no cap.", min=0.0, max=LONGEST_S)
    ] = 300.0,
    seeds: Annotated[int, typer.Option(help="How many seeds to average.", min=1)] = 3,
    window_s: Annotated[
        float, typer.Option(help="Seconds counted, after an hour of warm-up.", min=60.0, max=LONGEST_S)
    ] = 7_200.0,
    form: Form = "auto",
    on_error: OnErrorOption = "repair",
    columns: Columns = None,
    time_unit: Unit = None,
    preset: Annotated[str, typer.Option(help="Which sessions to generate.")] = "agentx",
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Preview the load of so many lanes when every turn takes its recorded time: no queue, no plant, no policy.

    Example: steadyflow trace lanes sessions.parquet --lanes 64
    """
    from scenarios.report.trace_table import print_preview
    from scenarios.trace.preview import averaged
    from scenarios.workloads.generate.presets import generate as make
    from scenarios.workloads.script import scripts

    corpus = (
        make(preset, sessions=700, seed=1)
        if path is None
        else _read(path, form, on_error=on_error, columns=columns, time_unit=time_unit)
    )
    figures = averaged(scripts(corpus), lanes=count, seeds=seeds, tree_idle_cap_s=idle_cap_s or None, window_s=window_s)
    if json:
        import orjson

        typer.echo(orjson.dumps(figures, option=orjson.OPT_INDENT_2).decode())
    else:
        print_preview(corpus.name, figures)


@app.command()
def convert(
    path: Trace,
    out: Annotated[Path, typer.Argument(help="Where it goes; .gz and .zst pack it.", callback=new_output)],
    to: Annotated[
        Literal["auto", "parquet", "weka", "mooncake"], typer.Option(help="The form; `auto`: Parquet by its suffix.")
    ] = "auto",
    form: Form = "auto",
    on_error: OnErrorOption = "repair",
    subagent_clock: Clock = "auto",
    block_tokens: Block = None,
    delta: Delta = False,
    drop_doubles: Doubles = False,
    columns: Columns = None,
    time_unit: Unit = None,
    spread_stamps: Spread = False,
    horizon_s: Horizon = 3_600.0,
    seed: Seed = 1,
) -> None:
    """Write a trace in another form, and list what that form cannot represent.

    Example: steadyflow trace convert sessions.parquet sessions.jsonl --to weka
    """
    from scenarios.report.trace_table import print_oddities
    from scenarios.trace.convert import convert as write

    if to == "auto" and out.suffix != ".parquet":
        raise UserError(f"{out}: --to weka or --to mooncake says which form; only .parquet follows from the name")
    corpus = _read(
        path,
        form,
        on_error=on_error,
        subagent_clock=subagent_clock,
        block_tokens=block_tokens,
        delta=delta,
        drop_doubles=drop_doubles,
        columns=columns,
        time_unit=time_unit,
        spread_stamps=spread_stamps,
        horizon_s=horizon_s,
        seed=seed,
    )
    lost = write(corpus, out, "parquet" if to == "auto" else to)
    typer.echo(f"{out}: {len(corpus.conversations)} conversations, {corpus.requests} requests")
    print_oddities("found while reading", corpus.repairs.rows())
    print_oddities("not held by the form", lost.rows())


@app.command()
def generate(
    preset: Annotated[str, typer.Argument(help="agentx, agentx_subagents, chat, rag or batch.")],
    out: Annotated[
        Path | None, typer.Argument(help="Where it goes (.parquet, or Weka JSONL).", callback=new_output)
    ] = None,
    sessions: Annotated[int, typer.Option(help="How many conversations.", min=1)] = 400,
    seed: Annotated[int, typer.Option(help="The same seed makes the same sessions.", min=0, max=LARGEST_SEED)] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Make sessions, and print what they are beside the published figures that they are held to.

    Example: steadyflow trace generate agentx sessions.parquet --sessions 400
    """
    from scenarios.report.trace_table import print_beside_targets
    from scenarios.trace.convert import convert as write
    from scenarios.trace.inspect import inspect as described
    from scenarios.trace.targets import beside
    from scenarios.workloads.generate.presets import generate as make

    corpus = make(preset, sessions=sessions, seed=seed)
    if out is not None:
        write(corpus, out, "parquet" if out.suffix == ".parquet" else "weka")
    rows = beside(preset, described(corpus))
    if json:
        import orjson

        summary = {"digest": corpus.digest(), "requests": corpus.requests, "beside": rows}
        typer.echo(orjson.dumps(summary, option=orjson.OPT_INDENT_2).decode())
    else:
        print_beside_targets(preset, corpus.requests, sessions, rows)
