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

    fit, kept = (make(), False) if fresh else cached(scenario, stir, KEPT, make)
    if as_json:
        print_json({**fit.to_json(), "kept": kept})
    else:
        _show(fit, kept)


def _startup(scenario: Scenario, name: str, stir: str, hold_s: float | None, fresh: bool, as_json: bool) -> None:
    def make() -> IdentifiedStartup:
        return identify_startup(scenario, name, excitation=stir, hold_s=hold_s)  # type: ignore[arg-type]  # checked

    fit, kept = (make(), False) if fresh else cached_startup(scenario, name, stir, KEPT, make)
    if as_json:
        print_json({**fit.to_json(), "kept": kept})
        return
    typer.echo(f"source       {fit.source}{', kept from before' if kept else ''}")
    typer.echo(f"pool         {fit.configuration}, stirred between {fit.low_workers} and {fit.high_workers} workers")
    typer.echo(f"gain         {fit.gain_ratio:.4g} +- {fit.gain_ci_ratio:.2g} ready workers for one wanted")
    up = _spread(fit.delay_s, fit.delay_ci_s), _spread(fit.dead_time_s, fit.dead_time_ci_s)
    typer.echo(f"starting     {up[0]} in all: dead time {up[1]}, lag {_spread(fit.tau_s, fit.tau_ci_s)}")
    down = (
        _spread(fit.down_delay_s, fit.down_delay_ci_s),
        _spread(fit.down_dead_time_s, fit.down_dead_time_ci_s),
    )
    typer.echo(f"winding down {down[0]} in all: dead time {down[1]}, lag {_spread(fit.down_tau_s, fit.down_tau_ci_s)}")
    white = "white" if fit.white else "not white (turns that end one by one, or starts that differ)"
    typer.echo(f"explained    {fit.explained_ratio:.1%}; residual {white}")
    if fit.declared_s is None:
        typer.echo("declared     nothing: the plant draws its starts; analyze uses what is identified here")
    else:
        typer.echo(f"declared     a start takes {fit.declared_s:.4g} s according to the plant; analyze uses that")
    if fit.ultimate_period_s is not None:
        typer.echo(f"ultimate     period {fit.ultimate_period_s:.4g} s")


def _spread(value_s: float, half_s: float) -> str:
    # A fit on its bound leaves a rounding error where it means nought.
    return f"{0.0 if abs(value_s) < 1e-6 else value_s:.4g} +- {half_s:.2g} s"


def _show(fit: Identified, kept: bool) -> None:
    typer.echo(f"source       {fit.source}{', kept from before' if kept else ''}")
    typer.echo(f"full pool    {fit.slots:g} slots, {fit.full_per_s:.4g} turns/s")
    if fit.open_per_s is not None:
        typer.echo(f"open gate    brings {fit.open_per_s:.4g} turns/s to the pool")
    typer.echo(f"gain         {_spread(fit.gain_s, fit.gain_ci_s)} (busy slots per turn/s)")
    typer.echo(f"lag          {_spread(fit.tau_s, fit.tau_ci_s)}")
    typer.echo(f"dead time    {_spread(fit.dead_time_s, fit.dead_time_ci_s)}")
    white = "white" if fit.white else "not white (more dynamics than one lag, or counting noise of the pool)"
    typer.echo(f"explained    {fit.explained_ratio:.1%}; residual {white}")
    if fit.ultimate_period_s is not None:
        typer.echo(f"ultimate     gain {fit.ultimate_gain_per_s:.4g} /s, period {fit.ultimate_period_s:.4g} s")
