"""`steadyflow identify FILE --loop admission`: the plant's gain, lag and dead time from an open-loop experiment."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, get_args

import typer

from scenarios.cli.common import RUNS, print_json
from scenarios.errors import UserError, nearest
from scenarios.identify.cache import cached
from scenarios.identify.identify import Excitation, Identified
from scenarios.identify.identify import identify as identify_plant
from scenarios.schema.load import load

KEPT = RUNS / "identified"


class Loop(StrEnum):
    """The loop whose plant is wanted."""

    ADMISSION = "admission"


def identify(
    file: Annotated[str, typer.Argument(help="A scenario file, or a name from `steadyflow list`.")],
    loop: Annotated[Loop, typer.Option(help="Which loop's plant.")] = Loop.ADMISSION,
    excitation: Annotated[str, typer.Option(help="step, prbs or relay.")] = "prbs",
    hold_s: Annotated[float | None, typer.Option(help="How long one level of the excitation lasts.")] = None,
    fresh: Annotated[bool, typer.Option(help="Experiment again even where a result is kept.")] = False,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override PATH=VALUE, as plant.dead_time_s=4; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Fit a lag with dead time to a plant by an open-loop experiment; analyze takes it where a plant declares none.

    Example: steadyflow identify full_empty_reference --excitation prbs
    """
    known = get_args(Excitation)
    if excitation not in known:
        raise UserError(f"--excitation {excitation}: must be one of {', '.join(known)}{nearest(excitation, known)}")
    if hold_s is not None and not 0 < hold_s < float("inf"):
        raise UserError(f"--hold-s {hold_s}: must be positive and finite")
    scenario = load(file, sets or ())

    def make() -> Identified:
        return identify_plant(scenario, excitation=excitation, hold_s=hold_s)  # type: ignore[arg-type]  # checked above

    if fresh or hold_s is not None:
        found, kept = make(), False
    else:
        found, kept = cached(scenario, excitation, KEPT, make)
    if as_json:
        print_json({**found.to_json(), "kept": kept})
    else:
        _show(found, kept)


def _show(found: Identified, kept: bool) -> None:
    typer.echo(f"source       {found.source}{', kept from before' if kept else ''}")
    typer.echo(f"full pool    {found.slots:g} slots, {found.full_per_s:.4g} turns/s")
    if found.open_per_s is not None:
        typer.echo(f"open door    brings {found.open_per_s:.4g} turns/s to the pool")
    typer.echo(f"gain         {found.gain_s:.4g} +- {found.gain_ci_s:.2g} s (busy slots per turn/s)")
    typer.echo(f"lag          {found.tau_s:.4g} +- {found.tau_ci_s:.2g} s")
    typer.echo(f"dead time    {found.dead_time_s:.4g} +- {found.dead_time_ci_s:.2g} s")
    white = "white" if found.white else "not white (more dynamics than one lag, or counting noise of the pool)"
    typer.echo(f"explained    {found.explained_ratio:.1%}; residual {white}")
    if found.ultimate_period_s is not None:
        typer.echo(f"ultimate     gain {found.ultimate_gain_per_s:.4g} /s, period {found.ultimate_period_s:.4g} s")
