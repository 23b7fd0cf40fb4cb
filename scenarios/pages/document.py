"""Put a page together from a template, and give it plotly.js: in one file beside the page, or in the page itself."""

from __future__ import annotations

import gzip
from base64 import b64encode
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from scenarios.pages.style import CSS
from scenarios.writing import atomic_write

# The basic bundle (lines, bars, pies) of the plotly.js that the plotly package in constraints.txt was released with.
PLOTLY = "plotly-basic-4.1.1.min.js"


@cache
def environment() -> Environment:
    """Return the templates; what they are given is escaped, and a name that is missing is an error."""
    loader = PackageLoader("scenarios.pages")
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def document(
    title: str, body: str, *, script: str = "", style: str = "", plotly: bool = True, inline: bool = True
) -> str:
    """Return a page as HTML.

    Parameters
    ----------
    title, body
        The title as text; the body as HTML.
    script, style
        JavaScript that runs after the body, and more rules of style.
    plotly
        Whether the page has plots.
    inline
        Whether plotly.js stands in the page, compressed; else the page reads it from the file `PLOTLY` beside it.
    """
    return (
        environment()
        .get_template("page.html")
        .render(
            title=title,
            body=Markup(body),
            css=Markup(CSS + style),
            script=Markup(script),
            plotly_file=PLOTLY if plotly and not inline else "",
            plotly_packed=b64encode(_packed()).decode() if plotly and inline else "",
        )
    )


@cache
def plotly_source() -> str:
    """Return plotly.js, basic bundle."""
    return gzip.decompress(_packed()).decode("utf-8")


def _packed() -> bytes:
    return resources.files("scenarios.pages").joinpath("assets", f"{PLOTLY}.gz").read_bytes()


def write_page(
    path: Path,
    title: str,
    body: str,
    *,
    script: str = "",
    style: str = "",
    plotly: bool = True,
    single_file: bool = False,
) -> Path:
    """Write a page and return its path; an older one there is replaced.

    Unless `single_file`, plotly.js stands once beside all pages of the folder.
    """
    html = document(title, body, script=script, style=style, plotly=plotly, inline=single_file)
    if plotly and not single_file:
        beside = path.resolve().parent / PLOTLY
        if not beside.exists():
            with atomic_write(beside) as part:
                part.write_text(plotly_source(), encoding="utf-8")
    with atomic_write(path) as part:
        part.write_text(html, encoding="utf-8")
    return path
