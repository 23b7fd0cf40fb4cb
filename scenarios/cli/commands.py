"""The commands, each with its line of help; a command's module is imported when the command is called."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class Entry(NamedTuple):
    """Where a command is, and the first sentence of its help."""

    module: str
    attribute: str
    help: str
    logs: bool = False  # has the options of `logging_options`


COMMANDS = {
    "demo": Entry("demo", "demo", "Compare policies on the shipped demonstrations and write a page on each.", True),
    "run": Entry(
        "run",
        "run",
        "Run one candidate of a scenario and say whether it oscillates, what that costs, and how it serves.",
        True,
    ),
    "serve": Entry(
        "serve",
        "serve",
        "Serve a modelled plant to any OpenAI client (at http://127.0.0.1:8000/v1): "
        "requests become turns, tokens stream.",
        True,
    ),
    "recover": Entry(
        "recover", "recover", "Close the journal of a killed server into a record, and say what is missing."
    ),
    "compare": Entry(
        "compare",
        "compare",
        "Compare a scenario's candidates; exit 1 when an expectation of the scenario fails.",
        True,
    ),
    "report": Entry("report", "report", "Write report.html on recorded runs; candidates are overlaid."),
    "analyze": Entry(
        "analyze",
        "analyze",
        "Predict each candidate's cycle, margins and utilisation before any closed-loop run.",
        True,
    ),
    "identify": Entry(
        "identify",
        "identify",
        "Fit a lag with dead time to a plant by an open-loop experiment; analyze takes it where a plant declares none.",
        True,
    ),
    "judge": Entry("judge", "judge", "Say of each series whether it oscillates, how, and what probably makes it."),
    "sweep": Entry("sweep", "sweep", "Measure the verdict over a grid of parameters and draw the map.", True),
    "robust": Entry(
        "robust", "robust", "Run the laws over draws of the stated uncertainty and say which survive.", True
    ),
    "tune": Entry(
        "tune",
        "tune",
        "Search the parameters of a law that serve best over an uncertain plant; exit 1 when none is safe.",
        True,
    ),
    "check-policy": Entry(
        "check_policy",
        "check_policy",
        "Ask of a law what is asked of every shipped one; exit 1 when it fails a question.",
    ),
    "fuzz": Entry(
        "fuzz",
        "fuzz",
        "Run random worlds over plants, traffic, laws, faults and telemetry; "
        "exit 1 where a law of every run is broken.",
    ),
    "suite": Entry(
        "suite",
        "suite",
        "Run the shipped scenarios on all cores and hold every candidate to what is expected of it.",
        True,
    ),
    "leaderboard": Entry(
        "leaderboard",
        "leaderboard",
        "Rank the laws by steadiness and by good turns per GPU-hour; dominated ones are shown as such.",
        True,
    ),
    "schema": Entry(
        "schema", "schema", "Print the reference of the scenario file: every key with type, unit, default and meaning."
    ),
    "list": Entry("library", "list_scenarios", "List the shipped scenarios, each with its question and candidates."),
    "trace": Entry("trace", "app", "Inspect, convert and generate traces."),
    "plan": Entry(
        "plan", "app", "Walk placements of a model on accelerators; show frontiers of latency, throughput, energy."
    ),
}


def imported(name: str) -> Any:  # Any: a command of Typer's own copy of click, which publishes no types
    """Return a command, or a group of them, with its options; imports its module."""
    entry = COMMANDS[name]
    loaded: typer.Typer | Callable[..., None] = getattr(import_module(f"scenarios.cli.{entry.module}"), entry.attribute)
    holder = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="rich")
    if isinstance(loaded, typer.Typer):
        holder.add_typer(loaded, name=name)
    elif entry.logs:
        from scenarios.cli.logging_options import logs

        holder.command(name=name)(logs(loaded))
    else:
        holder.command(name=name)(loaded)
    return typer.main.get_group(holder).commands[name]


class LazyGroup(TyperGroup):
    """The group of all commands: their names and lines of help at once, a command itself when it is called."""

    def __init__(self, **attributes: Any) -> None:  # Any: as Typer hands them on
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, help=entry.help) for name, entry in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name, the command and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None or name is None else imported(name), rest
