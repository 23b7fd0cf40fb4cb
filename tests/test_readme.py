"""The README names what exists, and all of it; no text for users refers to a label that only insiders know."""

from __future__ import annotations

import json
import re

from scenarios.cli.commands import COMMANDS, imported
from tests.paths import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SLOTS = ("admission", "batching", "capacity", "retention", "demand", "routing")


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_law_stands_in_the_table_and_every_law_of_the_table_exists() -> None:
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| ([^|]+) \|$", section("Laws"), flags=re.MULTILINE)
    named = {(slot, law) for slot, laws in rows for law in re.findall(r"`(\w+)`", laws)}
    there = {
        (slot, p.stem)
        for slot in SLOTS
        for p in (ROOT / "policies" / slot).glob("*.py")
        if p.stem not in ("hold", "__init__")
    }
    assert named == there


def test_every_command_stands_in_the_table_and_every_command_of_the_table_exists() -> None:
    named = set(re.findall(r"\| `steadyflow ((?:[a-z-]+ ?)+)", section("Commands")))
    there = set()
    for name in COMMANDS:
        command = imported(name)
        below = getattr(command, "commands", None)
        alone = not below or command.invoke_without_command
        there |= {f"{name} {inner}" for inner in below or ()} | ({name} if alone else set())
    assert {name.strip() for name in named} == there


def test_every_file_that_is_linked_exists() -> None:
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert links
    assert [link for link in links if not link.startswith("http") and not (ROOT / link).exists()] == []


def test_every_folder_of_the_house_plan_exists() -> None:
    plan = section("House plan").split("```")[1]
    rooms = re.findall(r"^(\w+)(?: \| (\w+))?  ", plan, flags=re.MULTILINE)
    names = {name for pair in rooms for name in pair if name}
    assert names == {"scenarios", "policies", "plant", "orchestrator"}
    assert [name for name in names if not (ROOT / name).is_dir()] == []


def test_no_document_help_text_or_notebook_cites_by_a_bare_label() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    texts |= {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CHANGELOG.md")}
    texts |= {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "scenarios" / "cli").glob("*.py")}
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts[path.name] = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    labels = {name: re.findall(r"(?<![-\w/])[AEM]\d{1,2}(?![\w.-])", text) for name, text in texts.items()}
    assert {name: hits for name, hits in labels.items() if hits} == {}


def test_the_readme_shows_output_for_each_of_its_questions() -> None:
    blocks = re.findall(r"```\n\$ (steadyflow \w+)[^`]*?\n(.+?)```", section("Four questions"), flags=re.DOTALL)
    shown = ["compare", "analyze", "robust", "judge"]
    assert [command for command, _ in blocks] == [f"steadyflow {name}" for name in shown]
    assert all(len(output.splitlines()) > 3 for _, output in blocks)
