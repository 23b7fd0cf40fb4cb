"""Scenario files of wrong types, of no text, or of no end: one line that says what is wrong, and exit code 2."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scenarios import cli
from scenarios.schema.files import library

MILD = library()["mild"].read_text(encoding="utf-8")
PERIOD = "period_s = { value = 4.83, rel = 0.03 }"
EXPECTED = "must be a word in quotes, { value = 1.0, rel = 0.05 } or { at_least = 1.0 }"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "x.toml: these keys are missing: title, question, seed"),
        (bytes(range(256)), "x.toml: is no text in UTF-8 (byte 128); a scenario is a TOML file"),
        (b"x = " + b"[" * 3000 + b"]" * 3000, "x.toml: nested too deeply for a scenario"),
        (MILD.replace("title =", '"tit\\nle" ='), "x.toml: tit le: unknown key (did you mean `title`?)"),
        (MILD.replace("slots = 512", "slots = true"), "x.toml: plant: slots = true: true and false are no value of"),
        (MILD.replace("seed = 20260930", 'seed = "x"'), "x.toml: seed = 'x': must be a valid integer\n"),
        (MILD.replace("[plant]", "[[plant]]"), ": must be a table\n"),
        ("candidates = 3\n" + MILD.split("[[candidates]]")[0], "x.toml: candidates = 3: must be a list\n"),
        (MILD.replace(PERIOD, "period_s = 4.83"), f"expect.retirement_gate.period_s = 4.83: {EXPECTED}"),
        (MILD.replace(PERIOD, "period_s = [4.83]"), f"expect.retirement_gate.period_s = [4.83]: {EXPECTED}"),
        (MILD.replace("rel = 0.03", "rel = -1.0"), "expect.retirement_gate.period_s.rel = -1.0: must be greater than"),
        (MILD.replace("rel = 0.03", "rell = 0.03"), "period_s.rell: unknown key (did you mean `rel`?)"),
    ],
)
def test_a_strange_file_is_one_line(
    content: str | bytes,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.setattr(sys, "argv", ["steadyflow", "run", "x.toml"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    err = capsys.readouterr().err
    assert (left.value.code, err.count("\n")) == (2, 1)
    assert message in err


def test_a_folder_is_told_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.toml").mkdir()
    monkeypatch.setattr(sys, "argv", ["steadyflow", "run", str(tmp_path / "d.toml")])
    with pytest.raises(SystemExit):
        cli.main()
    assert "d.toml: is a folder; name a file, or a scenario from `steadyflow list`" in capsys.readouterr().err


def test_what_looks_like_markup_is_shown_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text("t_s,[/z]\n" + "".join(f"{i},{i % 3}\n" for i in range(60)), encoding="utf-8")
    Path("x.toml").write_text(MILD.replace("Mild: short fill", "[/x] [bold] :smile:"), encoding="utf-8")
    for words, message in (
        (("judge", "x.csv"), "[/z]"),
        (("run", "x.toml", "--set", "horizon_s=20", "--set", "warmup_s=5"), "[/x] [bold] :smile:"),
        (("analyze", "x.toml"), "[/x] [bold] :smile:"),
    ):
        monkeypatch.setattr(sys, "argv", ["steadyflow", *words])
        with pytest.raises(SystemExit) as left:
            cli.main()
        assert left.value.code == 0
        assert message in capsys.readouterr().out
