"""`steadyflow serve` and `recover` as processes: a signal drains, a kill leaves what was flushed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from scenarios.run.load import load
from scenarios.schema.load import to_toml
from scenarios.serve.journal import live_folder
from tests.paths import ROOT
from tests.scenarios.serve.kit import GIVE_UP_S, chat, chunks, scenario


@contextmanager
def server(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command; yield its process and its address."""
    (folder / "test.toml").write_text(to_toml(scenario()))
    command = [sys.executable, "-m", "scenarios", "serve", str(folder / "test.toml"), "--port", "0"]
    command += ["--rate", "20", "--out", str(folder / "run")]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert address, line
        yield process, address.group()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_a_signal_drains_and_a_kill_can_be_recovered(tmp_path: Path) -> None:
    with server(tmp_path) as (process, address), httpx.Client(timeout=GIVE_UP_S, trust_env=False) as http:
        ask = chat("a b c", max_tokens=100, stream=True)
        with http.stream("POST", f"{address}/v1/chat/completions", json=ask) as answer:
            parts = answer.iter_bytes()
            body = next(parts)
            process.send_signal(signal.SIGTERM)
            body += b"".join(parts)
        assert len(chunks(body)) == 101
        assert process.wait(GIVE_UP_S) == 0
        assert process.stdout is not None
        assert "1 requests, 1 answered" in process.stdout.read()
    assert load(tmp_path / "run").summary["counts"]["retired"] == 1

    killed = tmp_path / "killed"
    killed.mkdir()
    with server(killed) as (process, address), httpx.Client(timeout=GIVE_UP_S, trust_env=False) as http:
        http.post(f"{address}/v1/chat/completions", json=chat("a", max_tokens=2)).raise_for_status()
        journal = live_folder(killed / "run") / "journal.bin"
        size = journal.stat().st_size
        while journal.stat().st_size == size:  # until the next flush
            http.get(f"{address}/health").raise_for_status()
    done = subprocess.run(
        [sys.executable, "-m", "scenarios", "recover", str(killed / "run")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
    )
    assert done.returncode == 0, done.stderr
    assert "1 requests, 1 answered" in done.stdout
    assert "did not end by itself" in done.stderr
