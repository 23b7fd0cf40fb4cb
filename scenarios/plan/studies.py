"""The planner's studies of memory value and of regimes, as tables, plain data and charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table

from plant.model.placement import Placement, PlacementError, check_placement, parse_placement
from plant.model.pricing import PriceCurve
from plant.model.regimes import setting_of
from scenarios.errors import UserError
from scenarios.plan import resolve
from scenarios.plan.views import faster_memory, intensities, memory_value, sharing

if TYPE_CHECKING:
    from plant.model.hardware import Hardware
    from plant.model.moe import Model
    from scenarios.plan.page import Chart


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Tables of a view: (title, head, rows), the plain form, and the charts on demand."""

    title: str
    lead: str
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]]
    plain: dict[str, object]
    charts: Callable[[], list[Chart]]

    def print(self, console: Console) -> None:
        """Print the tables."""
        for title, head, rows in self.tables:
            table = Table(title=title, title_justify="left")
            for i, name in enumerate(head):
                table.add_column(name, justify="left" if i == 0 else "right")
            for row in rows:
                table.add_row(*row)
            console.print(table)


def _plain(rows: Sequence[object]) -> list[dict[str, object]]:
    return [{name: _finite(getattr(row, name)) for name in type(row).__slots__} for row in rows]  # type: ignore[attr-defined]  # all are slotted dataclasses


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _placed(model: Model, hardware: Hardware, text: str) -> Placement:
    try:
        place = parse_placement(text)
        check_placement(model, hardware, place)
    except PlacementError as problem:
        raise UserError(str(problem)) from problem
    return place


def _in_context(model: Model, positions: int) -> None:
    if not 1 <= positions <= model.context_tokens:
        raise UserError(f"--context {positions}: {model.name} takes 1 to {model.context_tokens} positions")


def memory_view(
    model: str | None, config: Path | None, hardware: str, engine: str, placement: str, positions: int
) -> View:
    """Return value against capacity and rate of fast memory (Figure 23)."""
    chosen, machine = resolve.model_named(model, config), resolve.hardware_named(hardware)[0]
    place = _placed(chosen, machine, placement)
    _in_context(chosen, positions)
    capacities = np.arange(32e9, 544e9, 16e9)
    rows = memory_value(
        chosen,
        machine,
        resolve.engine_named(engine),
        place,
        context=positions,
        curve=PriceCurve(),
        capacities=capacities,
    )
    label = f"{chosen.name}, {place.label()}, {positions} positions a sequence"

    def charts() -> list[Chart]:
        from scenarios.plan.figures import value_chart

        return [value_chart(rows, label)]

    cells = [
        (f"{r.capacity_bytes / 1e9:.0f} GB, {r.hbm_bytes_per_s / 1e12:.1f} TB/s", f"{r.value_per_gpu_hour:.2f}",
         str(r.batch), f"{r.tpot_s * 1e3:.1f}" if r.batch else "-")
        for r in rows
        if (r.capacity_bytes / 16e9) % 4 == 0
    ]  # fmt: skip
    head = ("fast memory per GPU", "value per GPU-hour", "best batch", "ms/token")
    return View(
        title=f"{chosen.name}: value of fast memory",
        lead="The price of a token rises with its speed; each point uses the batch with the highest value.",
        tables=[(label, head, cells)],
        plain={"model": chosen.name, "placement": place.label(), "context": positions, "rows": _plain(rows)},
        charts=charts,
    )


def regimes_view(
    model: str | None, config: Path | None, hardware: str, engine: str, placement: str, positions: int, new: int,
    batch: int,
) -> View:  # fmt: skip
    """Return intensity by regime, expert sharing, and the effect of faster memory (Figures 6, 7, 10, 20, 21)."""
    chosen, machine = resolve.model_named(model, config), resolve.hardware_named(hardware)[0]
    place, software = _placed(chosen, machine, placement), resolve.engine_named(engine)
    _in_context(chosen, positions)
    by_regime = intensities(setting_of(chosen, machine, software, place), positions, new, batch)
    shared = sharing(chosen, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096])
    faster = faster_memory(chosen, machine, software, place, context=positions, new=new, batch=batch)
    label = f"{chosen.name}, {place.label()} on {machine.name}"

    def charts() -> list[Chart]:
        from scenarios.plan.figures import expert_chart, faster_chart, intensity_chart, sharing_chart

        return [intensity_chart(by_regime), expert_chart(chosen), sharing_chart(chosen), faster_chart(faster, label)]

    tables: list[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = [
        (
            f"FLOP per byte ({label}; fp8 balance {by_regime[0].ridge:.0f})",
            ("regime", "attention core", "projections", "routed experts"),
            [(r.regime, f"{r.attention_core:.1f}", f"{r.projections:.1f}", f"{r.experts:.1f}") for r in by_regime],
        ),
        (
            "expert sharing",
            ("tokens in the pass", "experts active", "of all", "tokens per expert", "active, Zipf 0.8"),
            [(str(s.tokens), f"{s.distinct:.0f}", f"{s.touched_ratio:.0%}", f"{s.tokens_per_expert:.2f}",
              f"{s.distinct_skewed:.0f}") for s in shared],
        ),
        (
            f"faster memory ({positions} cached, {new} new)",
            ("memory rate", "midfill ms", "decode ms/token", "midfill gain", "decode gain"),
            [(f"{f.ratio:g} x", f"{f.midfill_s * 1e3:.0f}", f"{f.decode_tpot_s * 1e3:.2f}",
              f"{f.midfill_gain_ratio:.2f}", f"{f.decode_gain_ratio:.2f}") for f in faster],
        ),
    ]  # fmt: skip
    plain: dict[str, object] = {
        "model": chosen.name,
        "placement": place.label(),
        "intensity": _plain(by_regime),
        "sharing": _plain(shared),
        "faster_memory": _plain(faster),
    }
    lead = f"{label}: what bounds each regime, how experts are shared, and the effect of faster memory."
    return View(title=f"{chosen.name}: regimes", lead=lead, tables=tables, plain=plain, charts=charts)
