"""The live page: its numbers are those of the record, and a real browser shows them, also after a restart."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from scenarios.serve.page import POINTS, plots, shell
from scenarios.serve.watch import RecentSignals
from tests.orchestrator.kit import ListSink
from tests.scenarios.serve.kit import GIVE_UP_S, chat, client, run, serving

if TYPE_CHECKING:
    from playwright.async_api import Page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WAIT_MS = GIVE_UP_S * 1000 / 2


def filled(bins: int, bin_s: float = 0.25) -> RecentSignals:
    """Ten minutes whose busy share chatters from bin to bin, and a first token in every bin that takes 3 s."""
    recent = RecentSignals(ListSink())
    t = bin_s * np.arange(bins)
    level = np.arange(bins) % 2.0
    names = [f"{signal}_{part}" for signal in ("backlog_turns", "in_flight_turns", "decode_occupancy_ratio")
             for part in ("mean", "min", "max")]  # fmt: skip
    rates = {"admitted_turns": np.full(bins, 2.0), "retired_turns": level}
    recent.signals(
        {"t_s": t.tolist()} | {name: level.tolist() for name in names} | {k: v.tolist() for k, v in rates.items()}
    )
    word = np.zeros(bins, dtype=int)
    ended = {"arrived_s": t - 2.9, "filled_s": t + 0.1, "ended_s": t + 0.2}
    recent.turns(ended | {"class": word, "outcome": word}, ["all"], ["retired"])
    return recent


@pytest.mark.parametrize("bins", [1, 2, 299, 2400])
def test_points_keep_every_turn_and_show_a_chatter_that_is_faster_than_they_are(bins: int) -> None:
    page = plots(filled(bins))
    edges = np.concatenate([[0.0], page["t_s"]])
    assert len(page["t_s"]) <= POINTS
    lines = {plot["id"]: plot["lines"] for plot in page["plots"]}
    busy = lines["decode_occupancy_ratio"][0]
    assert np.all(busy["low"] <= busy["values"])
    assert np.all(busy["values"] <= busy["high"])
    assert busy["low"].min() == 0.0
    assert busy["high"].max() == min(1.0, bins - 1.0)
    widths = np.diff(edges)
    admitted, retired = (line["values"] for line in lines["admission_per_s"])
    if bins > 1:  # one bin alone does not tell its width
        assert np.sum(admitted * widths) == pytest.approx(2.0 * bins)
        assert np.sum(retired * widths) == pytest.approx(bins // 2)
    for line in lines["ttft_s"]:
        assert line["values"] == pytest.approx(np.full(len(page["t_s"]), 3.0))


def test_a_server_without_bins_has_an_empty_page() -> None:
    page = plots(RecentSignals(ListSink()))
    assert len(page["t_s"]) == 0
    assert all(len(line["values"]) == 0 for plot in page["plots"] for line in plot["lines"])


def test_the_page_asks_nobody_but_its_server(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path / "run") as service, client(service) as http:
            answer = await http.get("/")
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/html")
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert (await http.post("/v1/chat/completions", json=chat("a", max_tokens=3))).status_code == 200
            service.flush()
            numbers = (await http.get("/live")).json()
            assert numbers["counts"] == {"arrived": 1, "retired": 1, "rejected": 0, "failed": 0}

    run(main)
    assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)", shell()[0])


@asynccontextmanager
async def browsed(**context: object) -> AsyncIterator[Page]:
    """Open a page in the system's browser."""
    from playwright.async_api import async_playwright

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield await (await browser.new_context(**context)).new_page()  # type: ignore[arg-type]
        finally:
            await browser.close()


@pytest.mark.slow
def test_a_browser_shows_a_page_that_moves_fits_a_narrow_window_and_survives_a_restart(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="playwright is not installed (it is in the extra dev)")
    if BROWSER is None:
        pytest.skip("there is no Chromium on this machine (Debian: apt-get install chromium)")
    errors: list[str] = []

    async def main() -> None:
        async with browsed(viewport={"width": 360, "height": 740}, color_scheme="dark") as page:
            page.on("pageerror", lambda error: errors.append(str(error)))
            async with serving(tmp_path / "first") as service, client(service) as http:
                port = service.port
                assert (await http.post("/v1/chat/completions", json=chat("a b", max_tokens=9))).status_code == 200
                await page.goto(f"http://127.0.0.1:{port}/")
                await page.wait_for_selector("#ttft_s path[d^=M]", state="attached", timeout=WAIT_MS)
                assert "1 arrived, 1 retired" in await page.inner_text("#counts")
                first = await page.get_attribute("body", "data-last-s")
                await page.wait_for_selector(f"body:not([data-last-s='{first}'])", timeout=WAIT_MS)
                assert await page.evaluate("document.documentElement.scrollWidth") <= 360
                background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
                assert sum(map(int, re.findall(r"\d+", background)[:3])) < 3 * 64  # dark, as asked
            await page.wait_for_selector("#status.bad", timeout=WAIT_MS)
            assert "asking again" in await page.inner_text("#status")
            before = await page.get_attribute("body", "data-run")
            async with serving(tmp_path / "second", port=port):
                await page.wait_for_selector(f"body:not([data-run='{before}'])", timeout=WAIT_MS)
                assert "Taking requests" in await page.inner_text("#status")
                assert "0 arrived" in await page.inner_text("#counts")

    run(main)
    assert errors == []
