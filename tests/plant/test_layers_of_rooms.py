"""The rooms of the plant lie in layers: each imports only those below it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.paths import ROOT

# From the bottom to the top; a file at the root of the plant is a room of its own.
LAYERS = (
    ("model", "signals"),
    ("presets", "cluster_spec", "faults", "hidden_turns", "pending_work"),
    ("links", "theory", "engines"),
    ("workers",),
    ("kv",),
    ("cluster_events",),
    ("fleet",),
    ("fault_schedule",),
    ("poison",),
    ("job_arrivals", "kv_staging"),
    ("cluster",),
)


def imports_between_rooms() -> Iterator[tuple[str, str, str]]:
    """Yield (file, its room, a room that it imports)."""
    for path in sorted((ROOT / "plant").rglob("*.py")):
        parts = path.relative_to(ROOT / "plant").with_suffix("").parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("plant."):
                target = str(node.module).split(".")[1]
                if target != parts[0]:
                    yield "/".join(parts), parts[0], target


def test_rooms_of_the_plant_import_only_lower_layers() -> None:
    layer = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}
    assert [(file, target) for file, room, target in imports_between_rooms() if layer[target] >= layer[room]] == []


def test_every_room_of_the_plant_has_a_layer() -> None:
    rooms = {path.stem for path in (ROOT / "plant").glob("[a-z]*.py")}
    rooms |= {path.parent.name for path in (ROOT / "plant").glob("*/__init__.py")}
    assert rooms == {room for layer in LAYERS for room in layer}
