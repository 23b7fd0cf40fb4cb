"""`steadyflow identify FILE --loop admission|capacity`: gain, lag and dead time from an open-loop experiment."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, get_args

import typer

from scenarios.cli.common import RUNS, print_json
from scenarios.errors import UserError, nearest
from scenarios.identify.cache import cached, cached_startup
from scenarios.identify.identify import Excitation, Identified
from scenarios.identify.identify import identify as identify_plant
from scenarios.identify.startup import IdentifiedStartup, identify_startup, pool_of
from scenarios.schema.load import load
from scenarios.schema.scenario import Scenario

KEPT = RUNS / "identified"


class Loop(StrEnum):
    """The loop whose plant is wanted."""

    ADMISSION = "admission"
    CAPACITY = "capacity"


def identify(
    file: Annotated[str, typer.Argument(help="A scenario file, or a name from `steadyflow list`.")],
    loop: Annotated[Loop, typer.Option(help="Which loop's plant.")] = Loop.ADMISSION,
    excitation: Annotated[
        str | None, typer.Option(help="step, prbs or relay [default: prbs for admission, step for capacity].")
    ] = None,
    configuration: Annotated[
        str | None, typer.Option(help="The pool to stir (capacity) [default: what a candidate scales].")
    ] = None,
    hold_s: Annotated[float | None, typer.Option(help="How long one level of the excitation lasts.")] = None,
    fresh: Annotated[bool, typer.Option(help="Experiment again even where a result is kept.")] = False,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="Override PATH=VALUE, as plant.dead_time_s=4; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON alone.")] = False,
) -> None:
    """Fit a lag with dead time to a plant by an open-loop experiment; analyze takes it where a plant declares none.

    Example: steadyflow identify pending_blind --loop capacity
    """
    known = get_args(Excitation)
    stir = excitation or ("prbs" if loop is Loop.ADMISSION else "step")
    if stir not in known:
        raise UserError(f"--excitation {stir}: must be one of {', '.join(known)}{nearest(stir, known)}")
    if hold_s is not None and not 0 < hold_s < float("inf"):
        raise UserError(f"--hold-s {hold_s}: must be positive and finite")
    scenario = load(file, sets or ())
    fresh = fresh or hold_s is not None
    if configuration is not None and loop is not Loop.CAPACITY:
        raise UserError(f"--configuration {configuration}: names a pool to stir; it goes with --loop capacity")
    if loop is Loop.CAPACITY:
        _startup(scenario, pool_of(scenario, configuration), stir, hold_s, fresh, as_json)
        return

    def make() -> Identified:
        return identify_plant(scenario, excitation=stir, hold_s=hold_s)  # type: ignore[arg-type]  # checked above

    found, kept = (make(), False) if fresh else cached(scenario, stir, KEPT, make)
    if as_json:
        print_json({**found.to_json(), "kept": kept})
    else:
        _show(found, kept)


def _startup(scenario: Scenario, name: str, stir: str, hold_s: float | None, fresh: bool, as_json: bool) -> None:
    def make() -> IdentifiedStartup:
        return identify_startup(scenario, name, excitation=stir, hold_s=hold_s)  # type: ignore[arg-type]  # checked

    found, kept = (make(), False) if fresh else cached_startup(scenario, name, stir, KEPT, make)
    if as_json:
        print_json({**found.to_json(), "kept": kept})
        return
    typer.echo(f"source       {found.source}{', kept from before' if kept else ''}")
    typer.echo(
        f"pool         {found.configuration}, stirred between {found.low_workers} and {found.high_workers} workers"
    )
    typer.echo(f"gain         {found.gain_ratio:.4g} +- {found.gain_ci_ratio:.2g} ready workers for one wanted")
    up = _spread(found.delay_s, found.delay_ci_s), _spread(found.dead_time_s, found.dead_time_ci_s)
    typer.echo(f"starting     {up[0]} in all: dead time {up[1]}, lag {_spread(found.tau_s, found.tau_ci_s)}")
    down = (
        _spread(found.down_delay_s, found.down_delay_ci_s),
        _spread(found.down_dead_time_s, found.down_dead_time_ci_s),
    )
    typer.echo(
        f"winding down {down[0]} in all: dead time {down[1]}, lag {_spread(found.down_tau_s, found.down_tau_ci_s)}"
    )
    white = "white" if found.white else "not white (turns that end one by one, or starts that differ)"
    typer.echo(f"explained    {found.explained_ratio:.1%}; residual {white}")
    if found.declared_s is None:
        typer.echo("declared     nothing: the plant draws its starts; analyze uses what is identified here")
    else:
        typer.echo(f"declared     a start takes {found.declared_s:.4g} s according to the plant; analyze uses that")
    if found.ultimate_period_s is not None:
        typer.echo(f"ultimate     period {found.ultimate_period_s:.4g} s")


def _spread(value_s: float, half_s: float) -> str:
    # A fit on its bound leaves a rounding error where it means nought.
    return f"{0.0 if abs(value_s) < 1e-6 else value_s:.4g} +- {half_s:.2g} s"


def _show(found: Identified, kept: bool) -> None:
    typer.echo(f"source       {found.source}{', kept from before' if kept else ''}")
    typer.echo(f"full pool    {found.slots:g} slots, {found.full_per_s:.4g} turns/s")
    if found.open_per_s is not None:
        typer.echo(f"open door    brings {found.open_per_s:.4g} turns/s to the pool")
    typer.echo(f"gain         {_spread(found.gain_s, found.gain_ci_s)} (busy slots per turn/s)")
    typer.echo(f"lag          {_spread(found.tau_s, found.tau_ci_s)}")
    typer.echo(f"dead time    {_spread(found.dead_time_s, found.dead_time_ci_s)}")
    white = "white" if found.white else "not white (more dynamics than one lag, or counting noise of the pool)"
    typer.echo(f"explained    {found.explained_ratio:.1%}; residual {white}")
    if found.ultimate_period_s is not None:
        typer.echo(f"ultimate     gain {found.ultimate_gain_per_s:.4g} /s, period {found.ultimate_period_s:.4g} s")
