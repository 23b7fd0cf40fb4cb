"""Head and foot of the report: the question, the answer, the table of verdicts, and the sources of the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

import orjson

from scenarios.report.answer import answer
from scenarios.report.numbers import NONE, percent, rows, seconds, words
from scenarios.report.panel import Shown
from scenarios.report.table import BAD, GOOD, tone

CLASSES = {BAD: "bad", GOOD: "good"}
LOUD = ("limit_cycle", "unbounded", "echo")
HOW = (
    "How to read this page: each panel's title is its finding. A line is a mean, the light band around it the least "
    "and greatest value, so nothing fast is hidden. The grey part is warm-up and counts nowhere. Drag to zoom: all "
    "time axes follow; double-click to return. Click a candidate above to hide or show it everywhere."
)


def top(runs: Sequence[Shown]) -> str:
    """Return the title, the question, the answer in a sentence and the tables, as HTML."""
    first = runs[0].run
    headline = answer([s.summary for s in runs], [s.name for s in runs])
    return (
        f"<header><h1>{escape(first.title or first.candidate)}</h1>"
        f'<p class="question">{escape(first.question)}</p><p id="answer">{_unbroken(headline)}</p></header>'
        f"{_verdicts(runs)}{_by_signal(runs)}"
    )


def _unbroken(text: str) -> str:
    # No line break between a number and its percent sign.
    return escape(text).replace(" %", "&nbsp;%")


def _verdicts(runs: Sequence[Shown]) -> str:
    headings, lines = rows([{**s.summary, "candidate": s.name} for s in runs])
    text = [h in ("candidate", "verdict", "theory") for h in headings]
    head = "".join(f'<th class="{"" if t else "num"}">{escape(h)}</th>' for h, t in zip(headings, text))
    body = []
    for s, line in zip(runs, lines):
        cells = [f'<td><span class="dot" style="background:{s.look.color}"></span>{escape(line[0])}</td>']
        kind = CLASSES.get(tone(line[1]), "mixed")
        cells.append(f'<td class="text {kind}">{_unbroken(line[1])}</td>')
        cells += [f'<td class="{"text" if t else "num"}">{escape(c)}</td>' for c, t in zip(line[2:], text[2:])]
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table id="verdicts"><tr>{head}</tr>{"".join(body)}</table></div>'


def _by_signal(runs: Sequence[Shown]) -> str:
    names = list(dict.fromkeys(name for s in runs for name in s.run.verdicts))
    if not names:
        return ""
    head = "".join(f"<th>{escape(s.name)}</th>" for s in runs)
    body = []
    for name in names:
        cells = []
        for s in runs:
            verdict = s.run.verdicts.get(name)
            if verdict is None:
                cells.append(f'<td class="quiet">{NONE}</td>')
                continue
            period = f", {seconds(verdict.period_s)}" if verdict.period_s is not None else ""
            swing = f", ±{percent(verdict.amplitude_ratio)}" if verdict.verdict != "constant" else ""
            kind = "bad" if verdict.verdict in LOUD else "quiet"
            cells.append(
                f'<td class="{kind}" title="{escape(verdict.reason)}">{words(verdict.verdict)}{period}{swing}</td>'
            )
        body.append(f"<tr><td>{escape(name)}</td>{''.join(cells)}</tr>")
    return (
        "<details><summary>The verdict on every signal: word, period, half swing as a share of its scale "
        '(hover for the reason)</summary><div class="scroll"><table id="signals">'
        f"<tr><th>signal</th>{head}</tr>{''.join(body)}</table></div></details>"
    )


def bar(runs: Sequence[Shown]) -> str:
    """Return the switches: one a candidate, and the stretches of time."""
    chips = "".join(
        f'<button aria-pressed="true" data-candidate="{escape(s.name)}" onclick="toggle(this)">'
        f'<span class="dot" style="background:{s.look.color}"></span>{escape(s.name)}</button>'
        for s in runs
    )
    first, last = runs[0].run.window_s
    close = max(first, last - _stretch(runs))
    spans = (("whole run", 0.0, last), ("judged window", first, last), ("close-up", close, last))
    buttons = "".join(f'<button onclick="zoom({a:.6g},{b:.6g},null)">{name}</button>' for name, a, b in spans)
    return f'<nav class="bar">{chips}<span class="gap"></span>{buttons}</nav><p class="how">{HOW}</p>'


def _stretch(runs: Sequence[Shown]) -> float:
    periods = [v.period_s for s in runs for v in s.run.verdicts.values() if v.period_s and v.verdict in LOUD]
    first, last = runs[0].run.window_s
    return 5.0 * max(periods) if periods else 0.1 * (last - first)


def foot(runs: Sequence[Shown]) -> str:
    """Return seeds, windows, decisions and the resolved scenarios, folded away."""
    lines = []
    for s in runs:
        first, last = s.run.window_s
        kinds = Counter(str(event.get("kind", "event")) for event in s.run.events)
        decisions = ", ".join(f"{n:,} {kind}" for kind, n in sorted(kinds.items())) or "none recorded"
        meta = orjson.dumps(dict(s.run.meta), option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode()
        lines.append(
            f"<p><b>{escape(s.name)}</b>: seed {escape(str(s.run.summary.get('seed', NONE)))}, judged from "
            f"{first:,.6g} s to {last:,.6g} s, ended by {escape(str(s.run.meta.get('ended', NONE)))}; decisions: "
            f"{escape(decisions)}.</p><details><summary>manifest and resolved scenario</summary>"
            f"<pre>{escape(meta)}</pre><pre>{escape(s.run.scenario_toml)}</pre></details>"
        )
    return f"<footer><h2>Where the numbers come from</h2>{''.join(lines)}</footer>"
