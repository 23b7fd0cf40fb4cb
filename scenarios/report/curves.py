"""Small pictures of curves as SVG: axes with round ticks, calendar times, steps; no script, a few kilobytes each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape

import numpy as np

from scenarios.verdict.types import Floats

LEFT, RIGHT, TOP, BOTTOM = 64, 12, 22, 40
CLOCK_STEPS_S = (1, 5, 15, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
DAY_S = 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points to join: by lines, or by steps where a value is `held`; `style` is a class of the style sheet."""

    x: Floats
    y: Floats
    style: str
    label: str = ""
    held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis: its title with unit, and whether its numbers are plain or seconds of the calendar (UTC)."""

    title: str
    kind: str = "number"


def chart(
    curves: Sequence[Curve], x: Axis, y: Axis, *, width: int = 760, height: int = 260, marks: Sequence[float] = ()
) -> str:
    """Return a picture of curves; `marks` are places on the x axis with a dotted line."""
    xs, ys = np.concatenate([curve.x for curve in curves]), np.concatenate([curve.y for curve in curves])
    across, up = _span(xs, 0.0), _span(ys, 0.06)
    inner_w, inner_h = width - LEFT - RIGHT, height - TOP - BOTTOM

    def place_x(value: float) -> float:
        return LEFT + (value - across[0]) / (across[1] - across[0]) * inner_w

    def place_y(value: float) -> float:
        return TOP + (up[1] - value) / (up[1] - up[0]) * inner_h

    parts = []
    for at in _ticks(*up, most=5):
        parts.append(f'<path class="grid" d="M{LEFT} {place_y(at):.1f}h{inner_w}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{place_y(at) + 4:.1f}" text-anchor="end">{at:.4g}</text>')
    for at in _clock_ticks(*across) if x.kind == "calendar" else _ticks(*across, most=6):
        parts.append(f'<path class="axis" d="M{place_x(at):.1f} {TOP + inner_h}v5"/>')
        x_text = _clock(at, across[1] - across[0]) if x.kind == "calendar" else f"{at:.6g}"
        parts.append(f'<text x="{place_x(at):.1f}" y="{height - 20}" text-anchor="middle">{x_text}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}v{inner_h}h{inner_w}"/>')
    inside = [at for at in marks if across[0] <= at <= across[1]]
    parts += [f'<path class="mark" d="M{place_x(at):.1f} {TOP}v{inner_h}"/>' for at in inside]
    for curve in curves:
        points = np.stack(
            [
                LEFT + (curve.x - across[0]) / (across[1] - across[0]) * inner_w,
                TOP + (up[1] - curve.y) / (up[1] - up[0]) * inner_h,
            ],
            axis=1,
        )
        parts.append(f'<path class="{curve.style}" d="{_path(points, curve.held)}"/>')
    legend = " · ".join(curve.label for curve in curves if curve.label)
    parts.append(f'<text x="{LEFT}" y="14">{escape(y.title or legend)}</text>')
    parts.append(f'<text x="{LEFT + inner_w / 2:.0f}" y="{height - 4}" text-anchor="middle">{escape(x.title)}</text>')
    label = escape(legend or y.title, quote=True)
    return f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _path(points: Floats, held: bool) -> str:
    first, rest = points[0], points[1:]
    drawn = "".join(f"H{px:.1f}V{py:.1f}" if held else f"L{px:.1f} {py:.1f}" for px, py in rest.tolist())
    return f"M{first[0]:.1f} {first[1]:.1f}{drawn}"


def _span(values: Floats, margin: float) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = (high - low) * margin if high > low else max(abs(high), 1.0) * 0.1
    return low - room, high + room


def _ticks(low: float, high: float, most: int) -> list[float]:
    rough = (high - low) / most
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [float(k * step) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def _clock_ticks(low: float, high: float) -> list[float]:
    step = next((tick_s for tick_s in CLOCK_STEPS_S if (high - low) / tick_s <= 6), CLOCK_STEPS_S[-1])
    return [float(k * step) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def _clock(at: float, span_s: float) -> str:
    when = datetime.fromtimestamp(at, UTC)
    if span_s > 5 * DAY_S:
        return f"{when:%d %b}"
    return f"{when:%H:%M:%S}" if span_s < 600 else f"{when:%d %b %H:%M}" if span_s > DAY_S else f"{when:%H:%M}"
