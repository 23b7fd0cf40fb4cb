"""Strings from a stranger's trace never become script on a page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from scenarios.report.explorer import write_explorer
from scenarios.trace.inspect import inspect
from scenarios.workloads.readers import detect
from tests.scenarios.workloads.kit import conversation, row, written

HOSTILE = "</script><script>steal()</script><img src=x onerror=steal()>"


class Tags(HTMLParser):
    """Collect the images of a page, the scripts that are one call, and attributes that run code."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handlers += [f"{tag} {name}" for name, _ in attrs if name.startswith("on")]
        self._script = tag == "script"

    def handle_data(self, data: str) -> None:
        if self._script and data.strip().startswith("steal()"):
            self.handlers.append("script")


def test_names_models_and_agents_of_a_trace_are_text_on_its_page(tmp_path: Path) -> None:
    inner = {"type": "subagent", "t": 5, "agent_id": HOSTILE, "status": HOSTILE, "requests": [row(0, 64)]}
    turns = [row(9 * k, 128 + 64 * k, model=HOSTILE, stop=HOSTILE) for k in range(4)]
    path = written(tmp_path, conversation([turns[0], inner, *turns[1:]], HOSTILE), name="<script>x.jsonl")
    corpus = detect.read(path)
    page = tmp_path / "page.html"
    write_explorer(corpus, inspect(corpus), page, ())
    tags = Tags()
    tags._script = False
    tags.feed(page.read_text(encoding="utf-8"))
    assert tags.handlers == []
    assert "steal()" in page.read_text(encoding="utf-8")
