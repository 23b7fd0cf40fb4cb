"""Print the description of a trace in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from scenarios.report.numbers import NONE, percent, plain, words
from scenarios.report.terminal import terminal

COLUMNS = ("p5", "p25", "p50", "p75", "p95", "p99", "mean", "max")
WIDE = 96
"""Characters from which the quartiles have room."""


def short(value: float) -> str:
    """Return a number in at most five characters: 855, 30.9k, 1.02M."""
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def print_description(figures: Mapping[str, Any]) -> None:
    """Print an inspection: what it is, marginals, hit and new tokens, arrivals, repairs."""
    show = terminal()
    streams = ", ".join(f"{count} {name}" for name, count in figures["streams"].items())
    blocks = ", ".join(str(b) for b in figures["block_tokens"])
    show.print(
        f"[bold]{escape(figures['name'])}[/bold] ({figures['format']}): {figures['conversations']:,} conversations, "
        f"{figures['requests']:,} requests, streams: {streams}; blocks of {blocks} tokens, ids {figures['scope']}",
        markup=True,
    )
    show.print(f"digest {figures['digest']}")
    if figures["source_sha256"]:
        show.print(f"file   {figures['source_sha256']}")
    show.print(_marginals(figures["quantiles"]))
    _print_hit(figures)
    _print_arrivals(figures["arrivals"])
    for warning in figures["warnings"]:
        show.print(warning, style="yellow")
    print_oddities("found while reading", figures["repairs"])


def _table(title: str) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True)
    table.title_justify = "left"
    return table


def _marginals(quantiles: Mapping[str, Mapping[str, float]]) -> Table:
    table = _table("")
    table.add_column("tokens, seconds", no_wrap=True)
    shown = COLUMNS if terminal().width >= WIDE else tuple(c for c in COLUMNS if c not in ("p25", "p75"))
    for column in shown:
        table.add_column(column, justify="right", no_wrap=True)
    for name, row in quantiles.items():
        table.add_row(words(name), *(short(row[column]) for column in shown))
    return table


def _print_hit(figures: Mapping[str, Any]) -> None:
    show = terminal()
    hit, new = figures["hit"], figures["new_tokens"]
    if figures["scope"] == "none":
        show.print("no prefix information: every prompt is new, and a cache policy cannot be judged on this trace")
        return
    late = ", ".join(f"{percent(ratio)} after a gap over {gap}" for gap, ratio in hit["after_gap_ratio"].items())
    show.print(
        f"theoretical prefix hit (infinite cache): [bold]{percent(hit['token_ratio'])}[/bold] of tokens, "
        f"{percent(hit['block_ratio'])} of blocks; {late}; {hit['wholly_cached_prompts']} prompts wholly cached",
        markup=True,
    )
    show.print(
        f"new tokens {new['tokens']:,}: {percent(new['first_ratio'])} first requests, "
        f"{percent(new['breaks_ratio'])} prefix breaks, {percent(new['growth_ratio'])} growth; "
        f"{percent(new['requests_for_half_ratio'])} of the requests bring half of them; "
        f"{new['large_drops']} drops of 64 k or more from near the peak"
    )
    for name, figures_of_break in new["breaks"].items():
        show.print(
            f"  {name}: {figures_of_break['events']}, {plain(figures_of_break['mean_new_tokens'])} new tokens each"
        )


def _print_arrivals(arrivals: Mapping[str, Any]) -> None:
    show = terminal()
    rate = arrivals.get("rate_per_s")
    line = f"arrivals ({arrivals['clock']}): gap CV {plain(arrivals['gap_cv'])}, dispersion " + ", ".join(
        f"{plain(value)} at {width}" for width, value in arrivals["dispersion"].items()
    )
    if rate is not None:
        line += f"; {plain(rate)} a second over {plain(arrivals['span_s'])} s"
        line += f", {percent(arrivals['zero_gap_ratio'])} at once"
        line += "; new tokens beside Poisson: " + ", ".join(
            f"{plain(value)} at {width}" for width, value in arrivals["new_token_dispersion"].items()
        )
    show.print(line)


def print_oddities(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what was odd, how often, where first, and what was done; nothing where nothing was odd."""
    if not rows:
        return
    table = _table(title)
    for column in ("what", "count", "first at", "done"):
        table.add_column(column, justify="right" if column == "count" else "left", overflow="fold")
    for row in rows:
        table.add_row(str(row["kind"]), f"{row['count']:,}", str(row["first_at"]).rsplit("/", 1)[-1], str(row["done"]))
    terminal().print(table)


def print_preview(name: str, figures: Mapping[str, Any]) -> None:
    """Print what load so many lanes make, and under which conventions."""
    show = terminal()
    cap = figures["tree_idle_cap_s"]
    show.print(
        f"[bold]{escape(name)}[/bold]: {figures['lanes']} lanes, first sessions cut anywhere in their run, recycled; "
        f"idle cap {'none' if cap is None else f'{plain(cap)} s'}; {plain(figures['window_s'])} s after an hour, "
        f"mean of {figures['seeds']} seeds, recorded service times",
        markup=True,
    )
    show.print(
        f"{plain(figures['requests_per_s'])} requests a second, {plain(figures['in_flight_turns'])} in flight "
        f"(p99 {plain(figures['in_flight_p99_turns'])}); tokens a second: {plain(figures['input_tokens_per_s'])} in, "
        f"{plain(figures['new_tokens_per_s'])} new, {plain(figures['output_tokens_per_s'])} out"
    )
    widths = ", ".join(f"{plain(value)} at {width}" for width, value in figures["dispersion"].items())
    show.print(f"dispersion of requests: {widths} (1: Poisson)")
    table = _table("share of prompt tokens that a cache of whole sessions supplies")
    for capacity in figures["hit_token_ratio"]:
        table.add_column(short(float(capacity)), justify="right", no_wrap=True)
    table.add_row(*(percent(value) for value in figures["hit_token_ratio"].values()))
    show.print(table)


def print_beside_targets(preset: str, requests: int, sessions: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print generated statistics beside the published ones."""
    table = _table(f"{preset}: {sessions} sessions, {requests:,} requests, beside the published figures")
    for column in ("figure", "statistic", "published", "generated", "off"):
        table.add_column(column, justify="left" if column in ("figure", "statistic") else "right", no_wrap=True)
    for row in rows:
        got, target = row["got"], row["target"]
        off = NONE if got is None else f"{100 * (got / target - 1):+.0f} %"
        table.add_row(words(row["figure"]), words(row["statistic"]), plain(target), plain(got), off)
    terminal().print(table)
