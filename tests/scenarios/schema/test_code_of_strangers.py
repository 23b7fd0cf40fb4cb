"""A scenario names code only beside itself, unless its user allows it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scenarios.build.laws.file import code_of
from scenarios.errors import UserError
from scenarios.schema.files import library
from scenarios.schema.load import load


def scenario_with(folder: Path, file: str) -> Path:
    """Return a scenario in this folder whose first candidate is a law from this file."""
    path = folder / "mine.toml"
    shutil.copy(library()["full_empty_reference"], path)
    law = f'[[candidates]]\nname = "own"\nadmission = {{ kind = "file", file = "{file}", law = "Mine" }}\n'
    path.write_text(path.read_text(encoding="utf-8") + "\n" + law, encoding="utf-8")
    return path


def test_code_beside_the_scenario_or_below_is_taken_and_named(tmp_path: Path) -> None:
    for place in (tmp_path / "law.py", tmp_path / "laws" / "law.py"):
        assert code_of(load(scenario_with(tmp_path, str(place)))) == [str(place)]


@pytest.mark.parametrize("file", ["/elsewhere/law.py", "../law.py", "law.py"])
def test_code_from_elsewhere_needs_the_users_word(tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    stranger = tmp_path / "download"
    home.mkdir()
    stranger.mkdir()
    monkeypatch.chdir(home)  # a relative path counts from the working directory
    path = scenario_with(stranger, file)
    with pytest.raises(UserError, match=r"mine\.toml: candidates\.own\.admission\.file: .*--allow-code"):
        load(path)
    assert code_of(load(path, allow_code=True)) == [file]


def test_a_link_out_of_the_folder_is_elsewhere(tmp_path: Path) -> None:
    stranger = tmp_path / "download"
    stranger.mkdir()
    (tmp_path / "law.py").write_text("", encoding="utf-8")
    (stranger / "law.py").symlink_to(tmp_path / "law.py")
    with pytest.raises(UserError, match="--allow-code"):
        load(scenario_with(stranger, str(stranger / "law.py")))


def test_what_the_user_sets_is_the_users_own() -> None:
    scenario = load("full_empty_reference", ['candidates.0.admission={kind="file", file="any/law.py", law="Mine"}'])
    assert code_of(scenario) == ["any/law.py"]
