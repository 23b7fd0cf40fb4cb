"""The conversation explorer: how contexts grow, break and come back, and what every turn brings.

Four views: context over turns of chosen conversations with compactions marked and transient drops visible; the same
against recorded time; cached, new and answer lengths of every turn; where new tokens come from. One HTML file that
opens from disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from scenarios.errors import UserError, nearest
from scenarios.pages.charts import chart
from scenarios.pages.document import write_page
from scenarios.report.numbers import percent, plain
from scenarios.report.panel import frame
from scenarios.trace.labels import BREAKS, label
from scenarios.workloads import derive
from scenarios.workloads.corpus import Conversation, Corpus

COLOURS = ("#3572c6", "#d1603d", "#2e9e6b", "#8a5fbf", "#b58a1b", "#c2487f", "#3c9fb0", "#7a7f87")
CACHED, NEW, ANSWER = "#5b8fd6", "#d1603d", "#2e9e6b"
MARKS = {
    "compaction": ("triangle-down", "#b3261e"),
    "stalactite": ("diamond", "#8a5fbf"),
    "rewrite": ("x", "#b3261e"),
    "shrink": ("triangle-down-open", "#d1603d"),
    "rewind": ("triangle-left", "#8a5a00"),
    "break": ("triangle-up", "#8a5a00"),
}
SHOWN, MOST_POINTS = 8, 4_000


def write_explorer(corpus: Corpus, figures: Mapping[str, Any], path: Path, names: Sequence[str] = ()) -> Path:
    """Write the page.

    Parameters
    ----------
    corpus : Corpus
    figures : mapping
        The corpus's inspection.
    path : Path
        The HTML file; its folder is made if it is missing.
    names : sequence of str
        Conversations to draw one by one; none named: those that are longest and those that break most.
    """
    chosen = choose(corpus, names)
    cached = {c.name: columns for c, columns in derive.with_cached_tokens(corpus)}
    sections = []
    if chosen:
        sections.append(
            _section(
                "context-turns",
                "Context at each turn",
                "One conversation's root in each field: the whole prompt, and in blue what an infinite cache would "
                "supply. Marks name the breaks of the prefix; a line that drops and comes back within three turns "
                "hangs down like a stalactite.",
                _fields(chosen, cached),
            )
        )
        sections.append(
            _section(
                "context-time",
                "The same conversations on one scale, against recorded time",
                "Plateaus are people and tools; most turns come in bursts between them.",
                _over_time(chosen),
            )
        )
    sections.append(
        _section(
            "every-turn",
            "Cached, new and answer length of every turn",
            f"All conversations on one scale, at most {MOST_POINTS:,} turns evenly picked. What is cached is derived "
            "from the blocks: an infinite cache in the trace's own scope.",
            _every_turn(corpus, cached),
        )
    )
    sections.append(
        _section(
            "new-share",
            f"{percent(figures['new_tokens']['requests_for_half_ratio'])} of the requests bring half of the new tokens",
            "Requests sorted by their new tokens, largest first, and the share of all new tokens that they bring. A "
            "controller that counts requests is blind to the few that make the load.",
            _lorenz(corpus, cached),
        )
    )
    return write_page(path, corpus.name, _body(corpus, figures, sections), single_file=True)


def choose(corpus: Corpus, names: Sequence[str]) -> list[Conversation]:
    """Return the conversations to draw: the named ones, else the largest contexts and the most broken, eight in all."""
    talks = [c for c in corpus.conversations if c.streams[0].relation != "independent"]
    if names:
        known = {c.name: c for c in talks}
        for name in names:
            if name not in known:
                raise UserError(f"--show {name}: no such conversation{nearest(name, known)}")
        return [known[name] for name in dict.fromkeys(names)]
    long = [c for c in talks if len(c.streams[0]) >= 10] or talks
    broken = sorted(long, key=lambda c: -sum(name in BREAKS for name in label(c.streams[0])))[: SHOWN // 2]
    large = sorted(long, key=lambda c: -int(c.streams[0].prompt_tokens.max()))
    return [*broken, *(c for c in large if c not in broken)][:SHOWN]


def _fields(chosen: Sequence[Conversation], cached: Mapping[str, list[Any]]) -> Any:  # plotly publishes no types
    rows = -(-len(chosen) // 2)
    titles = [f"{talk.name}: {len(talk.streams[0])} turns" for talk in chosen]
    gap = 0.26 / rows if rows > 1 else 0.0
    figure = frame(rows=rows, cols=2, height=210 * rows + 60, subplot_titles=titles, vertical_spacing=gap)
    for number, talk in enumerate(chosen):
        root, place = talk.streams[0], {"row": number // 2 + 1, "col": number % 2 + 1}
        turn = np.arange(1, len(root) + 1)
        held = {"mode": "lines", "line": {"width": 0}, "fill": "tozeroy", "fillcolor": "rgba(91,143,214,.35)"}
        figure.add_scatter(x=turn, y=cached[talk.name][0], **held, name="cached", showlegend=False, **place)
        line = {"color": COLOURS[0], "width": 1.5}
        figure.add_scatter(
            x=turn, y=root.prompt_tokens, mode="lines", line=line, name="prompt", showlegend=False, **place
        )
        _add_marks(figure, talk, turn, place)
    _mark_legend(figure, chosen)
    figure.update_layout(
        showlegend=True, hovermode="closest", legend={"orientation": "h", "y": -0.06, "entrywidth": 100}
    )
    figure.update_yaxes(rangemode="tozero")
    figure.update_xaxes(title_text="turn", row=rows)
    figure.update_yaxes(title_text="tokens", col=1)
    return figure


def _over_time(chosen: Sequence[Conversation]) -> Any:  # plotly publishes no types
    figure = frame(height=430)
    for number, talk in enumerate(chosen):
        root = talk.streams[0]
        hours = root.t_s / 3_600.0
        figure.add_scatter(
            x=hours,
            y=root.prompt_tokens,
            mode="lines",
            line={"color": COLOURS[number % len(COLOURS)], "width": 1.6, "shape": "hv"},
            name=talk.name,
            legendgroup=talk.name,
            hovertemplate="%{y:,} tokens<extra>" + escape(talk.name) + "</extra>",
        )
        _add_marks(figure, talk, hours, {})
    _mark_legend(figure, chosen)
    figure.update_layout(showlegend=True, hovermode="closest", legend={"orientation": "h", "y": -0.18})
    figure.update_xaxes(title_text="recorded time (h)")
    figure.update_yaxes(title_text="prompt (tokens)", rangemode="tozero")
    return figure


def _add_marks(figure: Any, talk: Conversation, x: Any, place: dict[str, int]) -> None:  # plotly publishes no types
    root, names = talk.streams[0], np.array(label(talk.streams[0]))
    for kind, (symbol, mark) in MARKS.items():
        at = np.flatnonzero(names == kind)
        if len(at):
            figure.add_scatter(
                x=x[at],
                y=root.prompt_tokens[at],
                mode="markers",
                marker={"symbol": symbol, "size": 9, "color": mark},
                name=kind,
                legendgroup=talk.name,
                showlegend=False,
                hovertemplate=f"{kind}: " + "%{y:,} tokens<extra>" + escape(talk.name) + "</extra>",
                **place,
            )


def _mark_legend(figure: Any, chosen: Sequence[Conversation]) -> None:  # plotly publishes no types
    present = {name for talk in chosen for name in label(talk.streams[0])}
    for kind, (symbol, mark) in MARKS.items():
        if kind in present:
            marker = {"symbol": symbol, "size": 9, "color": mark}
            figure.add_scatter(x=[None], y=[None], mode="markers", marker=marker, name=kind)


def _every_turn(corpus: Corpus, cached: Mapping[str, list[Any]]) -> Any:  # arrays of tokens; plotly publishes no types
    columns: dict[str, list[Any]] = {"turn": [], "cached": [], "new": [], "answer": []}
    for talk in corpus.conversations:
        for stream, hit in zip(talk.streams, cached[talk.name]):
            columns["turn"].append(np.arange(len(stream)))
            columns["cached"].append(hit)
            columns["new"].append(stream.prompt_tokens - hit)
            columns["answer"].append(stream.output_tokens)
    all_turns = {name: np.concatenate(parts) for name, parts in columns.items()}
    step = max(1, -(-len(all_turns["turn"]) // MOST_POINTS))
    figure = frame(cols=3, height=420, shared_yaxes=True, subplot_titles=("cached prefix", "new input", "answer"))
    for column, (name, colour) in enumerate((("cached", CACHED), ("new", NEW), ("answer", ANSWER)), 1):
        figure.add_scatter(
            x=all_turns["turn"][::step] + 1,
            y=np.maximum(all_turns[name][::step], 1),
            mode="markers",
            marker={"size": 3, "color": colour, "opacity": 0.35},
            hovertemplate=f"turn %{{x}}: %{{y:,}} tokens {name}<extra></extra>",
            row=1,
            col=column,
        )
    figure.update_layout(hovermode="closest")
    figure.update_xaxes(title_text="turn", type="log", dtick=1)
    figure.update_yaxes(type="log", dtick=1)
    figure.update_yaxes(title_text="tokens (1 stands for none)", row=1, col=1)
    return figure


def _lorenz(corpus: Corpus, cached: Mapping[str, list[Any]]) -> Any:  # arrays of tokens; plotly publishes no types
    streams = [(s, hit) for talk in corpus.conversations for s, hit in zip(talk.streams, cached[talk.name])]
    new = np.sort(np.concatenate([s.prompt_tokens - hit for s, hit in streams]))[::-1].astype(np.float64)
    share = np.cumsum(new) / max(1.0, new.sum())
    rank = np.arange(1, len(new) + 1) / len(new)
    keep = np.unique(np.geomspace(1, len(new), 400).astype(np.int64)) - 1
    figure = frame(height=340)
    figure.add_scatter(
        x=100 * rank[keep],
        y=100 * share[keep],
        mode="lines",
        line={"color": NEW, "width": 2},
        hovertemplate="%{x:.3g} % of the requests bring %{y:.3g} %<extra></extra>",
    )
    figure.update_xaxes(title_text="requests, largest first (%)", type="log", dtick=1)
    figure.update_yaxes(title_text="of all new tokens (%)", range=[0, 101])
    return figure


def _section(div: str, title: str, note: str, figure: Any) -> str:  # plotly publishes no types
    return f'<section><h3>{escape(title)}</h3><p class="note">{escape(note)}</p>{chart(figure, div)}</section>'


def _body(corpus: Corpus, figures: Mapping[str, Any], sections: Sequence[str]) -> str:
    title = f"{corpus.name}: {figures['conversations']:,} conversations, {figures['requests']:,} requests"
    new = figures["new_tokens"]
    lead = (
        f"An infinite cache would supply {percent(figures['hit']['token_ratio'])} of all prompt tokens. Of the rest, "
        f"{percent(new['first_ratio'])} are first requests, {percent(new['breaks_ratio'])} broken prefixes and "
        f"{percent(new['growth_ratio'])} growth."
    )
    return (
        f'<h1>{escape(title)}</h1><p class="question">{escape(lead)}</p>{_marginals(figures)}{"".join(sections)}'
        f"<footer><p>digest {figures['digest']}</p>{_repairs(figures)}</footer>"
    )


def _marginals(figures: Mapping[str, Any]) -> str:
    heads = ("p5", "p25", "p50", "p75", "p95", "p99", "mean", "max")
    rows = "".join(
        f"<tr><td>{escape(name.replace('_', ' '))}</td>"
        + "".join(f'<td class="num">{plain(quantiles[h])}</td>' for h in heads)
        + "</tr>"
        for name, quantiles in figures["quantiles"].items()
    )
    head = "".join(f'<th class="num">{h}</th>' for h in heads)
    return f'<div class="scroll"><table><tr><th>tokens, seconds</th>{head}</tr>{rows}</table></div>'


def _repairs(figures: Mapping[str, Any]) -> str:
    if not figures["repairs"]:
        return "<p>Reading met no irregularity.</p>"
    rows = "".join(
        f"<tr><td>{escape(str(r['kind']))}</td><td class='num'>{r['count']:,}</td>"
        f'<td class="text">{escape(str(r["done"]))}</td></tr>'
        for r in figures["repairs"]
    )
    return f"<table><tr><th>found while reading</th><th class='num'>count</th><th>done</th></tr>{rows}</table>"
