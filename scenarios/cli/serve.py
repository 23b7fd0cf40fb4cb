"""`steadyflow serve FILE`: the plant of a scenario as an OpenAI-compatible endpoint, in wall time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenarios.cli.common import free_folder
from scenarios.cli.options import LARGEST_SEED, new_folder, positive
from scenarios.errors import UserError, nearest
from scenarios.schema.files import find
from scenarios.schema.load import load
from scenarios.writing import reason

if TYPE_CHECKING:
    from scenarios.serve.service import Service

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    file: Annotated[str, typer.Argument(help="A scenario file, or a name from `steadyflow list`.")],
    candidate: Annotated[str | None, typer.Option(help="Whose laws; without it, the first candidate's.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; beyond this machine only with --api-keys.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any that is free.", min=0, max=65535)] = 8000,
    rate: Annotated[
        float, typer.Option(help="Seconds of the plant in one second of the wall.", min=0.001, max=1e4)
    ] = 1.0,
    seed: Annotated[int | None, typer.Option(help="Another seed than the scenario's.", min=0, max=LARGEST_SEED)] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override PATH=VALUE, as workload.model=my-model; repeatable.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A new folder for the record; else one under runs/.", callback=new_folder)
    ] = None,
    for_s: Annotated[
        float | None, typer.Option("--for-s", help="Stop after so many seconds.", callback=positive)
    ] = None,
    drain_s: Annotated[float, typer.Option(help="How long turns under way may take when it stops.", min=0.0)] = 30.0,
    max_streams: Annotated[int, typer.Option(help="Most requests at once; more get 429.", min=1)] = 1024,
    max_body_mb: Annotated[int, typer.Option(help="Largest body of a request, in MiB.", min=1, max=4096)] = 64,
    api_keys: Annotated[
        Path | None, typer.Option(help="A file of keys, one a line; requests must then carry one of them.")
    ] = None,
) -> None:
    """Serve a modelled plant to any OpenAI client (at http://127.0.0.1:8000/v1): requests become turns, tokens stream.

    Example: steadyflow serve agentx_lanes --port 8000
    """
    try:
        from scenarios.serve.lifetime import serve_until_stopped
        from scenarios.serve.options import ServeOptions
    except ImportError as error:
        raise UserError(f'serve needs the package {error.name}: pip install "steadyflow[serve]"') from None
    scenario = load(file, sets or ())
    names = [each.name for each in scenario.candidates]
    chosen = names[0] if candidate is None else candidate
    if chosen not in names:
        known = nearest(chosen, names)
        raise UserError(f"{find(file).name}: no candidate {chosen}{known}; there are {', '.join(names)}")
    keys = _keys(api_keys)
    if host not in LOOPBACK and not keys:
        raise UserError(f"--host {host}: anyone who reaches it could use it; give --api-keys, or listen on 127.0.0.1")
    options = ServeOptions(
        host=host,
        port=port,
        rate=rate,
        drain_s=drain_s,
        max_streams=max_streams,
        max_body_bytes=max_body_mb << 20,
        api_keys=keys,
    )
    run = free_folder(f"serve-{find(file).stem}-{chosen}") if out is None else out

    def started(service: Service) -> None:
        address = f"[{host}]" if ":" in host else host
        typer.echo(
            f"serving {service.models()[0]} at http://{address}:{service.port}/v1 with the laws of {chosen}; "
            "Ctrl+C drains, a second one stops",
            err=True,
        )

    data = serve_until_stopped(
        scenario, chosen, scenario.seed if seed is None else seed, options, run, for_s=for_s, started=started
    )
    counts = data.summary["counts"]
    typer.echo(f"{counts['arrived']} requests, {counts['retired']} answered; {data.summary['headline']}")
    typer.echo(f"record: {run}   (a page of it: steadyflow report {run})")


def _keys(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        keys = tuple(line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    except OSError as error:
        raise UserError(f"--api-keys {path}: cannot be read: {reason(error)}") from error
    except UnicodeDecodeError:
        raise UserError(f"--api-keys {path}: is no text; write one key a line") from None
    if not keys:
        raise UserError(f"--api-keys {path}: holds no key; write one a line")
    return keys
