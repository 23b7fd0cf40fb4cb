"""The page of `robust`: each law's yield, and over every uncertain parameter where it holds and where it breaks."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.table import Table

from scenarios.pages.charts import chart
from scenarios.pages.document import write_page
from scenarios.report.panel import frame
from scenarios.report.table import fitted
from scenarios.robust import LawYield, Robustness
from scenarios.robust.draws import LINEAR
from scenarios.robust.outcome import WORDS

HEADINGS = ("law", "yield", "95 %", "utilisation 5 %", "median", "least", "TTFT p99, 95 %")
DROPPED = ("TTFT p99, 95 %", "median", "95 %")
# Different in brightness as well as in hue, and by symbol.
COLOURS = dict(zip(WORDS, ("#8fd3b0", "#bdbdbd", "#f6a860", "#a4243b")))
SYMBOLS = dict(zip(WORDS, ("circle", "circle-open", "square", "x")))
ROW_HEIGHT = 230


def line(law: LawYield) -> tuple[str, ...]:
    """Return one law's cells as text."""
    low, high = law.interval
    used, late = law.utilization, law.ttft_p99_s
    return (
        law.candidate,
        f"{law.holding} of {len(law.outcomes)}",
        f"{low:.2f} to {high:.2f}",
        f"{used['p5']:.3f}",
        f"{used['p50']:.3f}",
        f"{used['min']:.3f}",
        "" if late is None else f"{late['p95']:.3g} s",
    )


def ordered(robustness: Robustness) -> list[LawYield]:
    """Return the laws, the greatest yield first; equal ones by their utilisation at the 5 % draw."""
    return sorted(robustness.laws, key=lambda law: (-law.yield_ratio, -law.utilization["p5"]))


def robust_table(robustness: Robustness, width: int | None = None) -> Table:
    """Return the table for the terminal."""
    return fitted(
        HEADINGS, [line(law) for law in ordered(robustness)], lambda *_: "", dropped=DROPPED, words={}, width=width
    )


def sentence(law: LawYield) -> str:
    """Say in one sentence where a law breaks."""
    broken = len(law.outcomes) - law.holding
    if broken == 0:
        return f"{law.candidate} holds at every draw."
    if law.holding == 0:
        return f"{law.candidate} holds at no draw."
    where = law.breaks
    if where is None:
        return f"{law.candidate} breaks at {broken} draws; no parameter alone tells which."
    return f"{law.candidate} breaks with {where}."


def robust_figure(laws: Sequence[LawYield], names: Sequence[str]) -> Any:  # plotly publishes no types
    """Return the picture: a row a law; the plane of each two neighbouring parameters, then utilisation over each."""
    planes = list(pairwise(names))[:1]
    columns = len(planes) + len(names)
    titles = [law.candidate if column == 0 else "" for law in laws for column in range(columns)]
    figure = frame(len(laws), columns, height=60 + ROW_HEIGHT * len(laws), subplot_titles=titles)
    for row, law in enumerate(laws, 1):
        for word in WORDS:
            chosen = [outcome for outcome in law.outcomes if outcome.word == word]
            if not chosen:
                continue
            texts = [
                f"{outcome.verdict.replace('_', ' ')}, {outcome.fed}, {outcome.utilization_ratio:.3f} busy<br>"
                + ", ".join(f"{name} {value:.3g}" for name, value in outcome.draw.items())
                for outcome in chosen
            ]
            axes = [(name, other) for name, other in planes] + [(name, None) for name in names]
            for column, (across, up) in enumerate(axes, 1):
                figure.add_scatter(
                    x=[outcome.draw[across] for outcome in chosen],
                    y=[outcome.utilization_ratio if up is None else outcome.draw[up] for outcome in chosen],
                    mode="markers",
                    name=word,
                    legendgroup=word,
                    showlegend=column == 1 and not any(trace.name == word for trace in figure.data),
                    marker={"color": COLOURS[word], "symbol": SYMBOLS[word], "size": 8, "line": {"width": 1}},
                    text=texts,
                    hovertemplate="%{text}<extra></extra>",
                    row=row,
                    col=column,
                )
                _label(figure, across, up, row, column)
    figure.update_layout(
        showlegend=True, hovermode="closest", legend={"orientation": "h", "y": 1.0, "yanchor": "bottom"}
    )
    return figure


def _label(figure: Any, across: str, up: str | None, row: int, column: int) -> None:  # plotly publishes no types
    def kind(name: str) -> str:
        return "linear" if name in LINEAR else "log"

    figure.update_xaxes(title_text=across, type=kind(across), row=row, col=column)
    if up is None:
        figure.update_yaxes(title_text="slots busy", rangemode="tozero", row=row, col=column)
    else:
        figure.update_yaxes(title_text=up, type=kind(up), row=row, col=column)


def write_robust(robustness: Robustness, path: Path, *, single_file: bool = False) -> Path:
    """Write the page and return its path."""
    laws = ordered(robustness)
    ranges = "; ".join(f"{name} from {low:g} to {high:g}" for name, (low, high) in robustness.ranges.items())
    head = "".join(f"<th>{escape(heading)}</th>" for heading in HEADINGS)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line(law))}</tr>" for law in laws)
    body = (
        f"<h1>{escape(robustness.title)}: which law survives a plant that is not as stated?</h1>"
        f'<p id="answer">{escape(" ".join(sentence(law) for law in laws))}</p>'
        f'<p class="note">{len(laws[0].outcomes)} draws by Latin hypercube of {escape(ranges)}. Every law meets the '
        "same draws on the same seeds and keeps the parameters of the scenario. Yield: draws at which the pool's "
        "occupancy is calm and the pool is not starved, with the exact binomial interval of 95 %.</p>"
        f'<div id="yields" class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
        f"{chart(robust_figure(laws, list(robustness.ranges)), 'robust-map')}"
    )
    return write_page(path, f"{robustness.title}: robustness", body, single_file=single_file)
