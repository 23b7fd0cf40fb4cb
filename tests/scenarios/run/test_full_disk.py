"""A disk that takes no more: one line, exit code 2, and nothing half-written."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scenarios import cli
from scenarios.errors import UserError
from scenarios.run import record
from scenarios.run.record import RunData
from scenarios.writing import atomic_write
from tests.scenarios.fake_runs import fake_run


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """Let no file grow beyond a size: writes fail as they do on a full disk, by another number."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(scope="module")
def run() -> RunData:
    return fake_run(horizon_s=120.0)


@pytest.mark.parametrize("size_bytes", [0, 100, 3000, 20_000])
def test_a_record_that_no_longer_fits_leaves_nothing_behind(run: RunData, tmp_path: Path, size_bytes: int) -> None:
    with pytest.raises(UserError, match="a: cannot be written: File too large") as refused, largest_file(size_bytes):
        record.write(tmp_path / "a", run)
    assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_no_longer_fits_leaves_the_older_one_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("older", encoding="utf-8")
    with pytest.raises(UserError, match=r"page\.html: cannot be written"), largest_file(10), atomic_write(path) as part:
        part.write_text("x" * 100, encoding="utf-8")
    assert [(entry.name, entry.read_text(encoding="utf-8")) for entry in tmp_path.iterdir()] == [("page.html", "older")]


def test_what_is_no_plain_file_is_written_to_and_not_replaced() -> None:
    with atomic_write(Path("/dev/null")) as part:
        part.write_text("x", encoding="utf-8")
    assert Path("/dev/null").is_char_device()


def test_the_command_says_so_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(self: Path, *_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", str(self))

    (tmp_path / "x.csv").write_text("t_s,x\n" + "".join(f"{i},{i % 3}\n" for i in range(40)), encoding="utf-8")
    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(
        sys, "argv", ["steadyflow", "judge", str(tmp_path / "x.csv"), "--html", str(tmp_path / "y.html")]
    )
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    assert capsys.readouterr().err == f"steadyflow: {tmp_path / 'y.html'}: cannot be written: No space left on device\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.csv"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_an_output_that_takes_no_more_is_one_line_too() -> None:
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "scenarios", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (result.returncode, result.stderr) == (
        2,
        "steadyflow: the output cannot be written: No space left on device\n",
    )
