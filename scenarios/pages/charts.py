"""Figures of a page, and how they are shown: without a button that sends their data anywhere."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

# plotly.js 4 shows a "share chart" button by default, which uploads the data of the plot to a public server.
SHARING_BUTTONS = ("sendChartToCloud", "sendDataToCloud", "editInChartStudio")
_REMOVED = (*SHARING_BUTTONS, "zoom2d", "pan2d", "select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d")
CONFIG = {
    "responsive": True,
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": list(_REMOVED),
}


def without_sharing(figure: Any) -> Any:  # plotly publishes no types
    """Take the sharing buttons from a figure's own layout, for wherever else it is shown, and return it."""
    figure.update_layout(modebar_remove=list(SHARING_BUTTONS))
    return figure


def chart(figure: Any, div: str) -> Markup:  # plotly publishes no types
    """Return a figure as HTML in an element of its own height; plotly.js itself is the document's."""
    body = without_sharing(figure).to_html(full_html=False, include_plotlyjs=False, div_id=div, config=CONFIG)
    height = figure.layout.height
    style = f' style="height:{int(height)}px"' if height else ""
    return Markup(f'<div class="chart"{style}>{body}</div>')
