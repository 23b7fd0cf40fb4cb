"""No page sends anything anywhere, and none is heavy."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from scenarios.pages.charts import CONFIG, SHARING_BUTTONS, chart
from scenarios.pages.document import PLOTLY, document, environment, plotly_source, write_page
from scenarios.report.page import write_report
from scenarios.report.panel import frame
from scenarios.run.result import Run
from tests.paths import ROOT
from tests.scenarios.fake_runs import fake_run, page

BUNDLED = {"scatter", "bar", "pie"}


def test_no_plot_of_a_page_can_share_its_data() -> None:
    html = page([fake_run("a"), fake_run("b", relay=False)])
    plots = len(re.findall(r'Plotly\.newPlot\(\s*"', html))
    assert plots > 8
    assert html.count('"showSendToCloud": false') == plots
    assert html.count('"remove":["sendChartToCloud"') == plots


def test_a_plot_in_a_notebook_cannot_share_its_data_either() -> None:
    assert set(SHARING_BUTTONS) <= set(Run(fake_run()).plot().layout.modebar.remove)


def test_every_figure_of_a_page_goes_through_the_one_place_that_turns_sharing_off() -> None:
    elsewhere = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in sorted((ROOT / "scenarios").rglob("*.py"))
        if path.name != "charts.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("to_html", "write_html", "show", "newPlot")
        if not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    assert elsewhere == []
    assert CONFIG["showSendToCloud"] is False


def test_the_bundle_draws_every_kind_of_trace_that_is_used() -> None:
    names = set()
    for path in sorted((ROOT / "scenarios").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        names |= {name.lower() for name in re.findall(r"\bgo\.(?!Figure)([A-Z]\w+)\(", text)}
        names |= set(re.findall(r"figure\.add_(scatter\w*|bar|heatmap|contour|histogram|box|sankey)\(", text))
    assert names <= BUNDLED
    assert all(f'name:"{kind}"' in plotly_source() for kind in names)


def test_a_page_in_one_file_is_under_one_and_a_half_megabytes_and_fetches_nothing() -> None:
    html = page([fake_run("a"), fake_run("b", relay=False)])
    assert len(html.encode()) < 1.5e6
    assert not re.search(r"<(script|link|img|iframe)[^>]+(src|href)=", html)


def test_pages_of_one_folder_share_one_plotly_file(tmp_path: Path) -> None:
    runs = [fake_run("a", horizon_s=120.0)]
    first, second = (write_report(runs, tmp_path / name) for name in ("a.html", "b.html"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html", PLOTLY]
    assert f'<script src="{PLOTLY}">' in first.read_text(encoding="utf-8")
    assert second.stat().st_size < 1.0e6
    alone = write_report(runs, tmp_path / "alone" / "c.html", single_file=True)
    assert [path.name for path in alone.parent.iterdir()] == ["c.html"]


def test_a_page_without_plots_carries_no_plotly(tmp_path: Path) -> None:
    path = write_page(tmp_path / "t.html", "t", "<p>x</p>", plotly=False)
    assert path.stat().st_size < 20_000


def test_titles_are_escaped_and_a_missing_name_is_an_error() -> None:
    assert "<title>a &lt;b&gt;" in document("a <b>", "", plotly=False)
    with pytest.raises(UndefinedError):
        environment().get_template("page.html").render(title="t")


def test_a_chart_stands_in_an_element_of_its_height() -> None:
    assert str(chart(frame(height=321), "x")).startswith('<div class="chart" style="height:321px">')
