"""The shape of the house, held by tests: who may import whom, what is banned, how long things may be."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from orchestrator.catalogue import TURN_COLUMNS
from scenarios.catalogue.signals import ALL
from tests.paths import ROOT
from tests.source_trees import (
    PACKAGES,
    bound_names,
    circles,
    import_graph,
    imports,
    module_name,
    names_used,
    public_names,
    sources,
    trees,
    words_of_documents,
)

MAY_IMPORT = {
    "orchestrator": {"orchestrator"},
    "policies": {"policies", "orchestrator"},
    "plant": {"plant", "orchestrator"},
    "scenarios": set(PACKAGES),
}
# Inside scenarios, from the top layer to the bottom one; a room may import its own layer's own room and lower layers.
LAYERS = (
    ("cli",),
    ("report",),
    ("leaderboard",),
    ("tune",),
    ("suite", "robust"),
    (
        "api",
        "calibrate",
        "compare",
        "sweep",
        "judge",
        "analyze",
        "identify",
        "plan",
        "serve",
        "demo",
        "testing",
        "fuzz",
    ),
    ("run", "conformance", "trace"),
    ("verdict",),
    ("build",),
    ("schema", "workloads", "library"),
    ("catalogue",),
    ("pages",),
    ("writing",),
    ("commentary",),
    ("errors",),
)
FILE_LINES, FUNCTION_LINES = 300, 70
ESCAPE = "# wall-clock:"
UNIT_ENDINGS = (
    "_s",
    "_hz",
    "_tokens",
    "_bytes",
    "_turns",
    "_ratio",
    "_workers",
    "_w",
    "_j",
    "_flops",
    "_steps",
    "_total",
)


def test_imports_point_down_between_packages() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path, tree in trees()
        for name in imports(tree)
        if name.split(".")[0] in PACKAGES and name.split(".")[0] not in MAY_IMPORT[path.relative_to(ROOT).parts[0]]
    ]
    assert wrong == []


def layer_of(room: str) -> int | None:
    return next((i for i, rooms in enumerate(LAYERS) if room in rooms), None)


def test_imports_point_down_inside_scenarios() -> None:
    wrong = []
    for path, tree in trees():
        parts = path.relative_to(ROOT).with_suffix("").parts
        if parts[0] != "scenarios" or parts[1] in ("__init__", "__main__"):
            continue
        own_layer = layer_of(parts[1])
        assert own_layer is not None, f"{path.relative_to(ROOT)}: no layer is written for this room"
        for name in imports(tree):
            target = name.split(".")
            if target[0] == "scenarios" and len(target) > 1 and target[1] != parts[1]:
                other = layer_of(target[1])
                if other is not None and other <= own_layer and target[1] != parts[1]:
                    wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert wrong == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(import_graph()) == []


def test_a_circle_is_seen_through_a_third_module() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [["a", "b", "c"]]
    assert circles({"a": {"b"}, "b": set()}) == []


BANNED = re.compile(
    r"\btime\.(time|monotonic|perf_counter|sleep)\b|datetime\.now|\bimport random\b|\brandom\.random\b|np\.random\.seed"
    r"|np\.random\.(rand|randn|random|normal|uniform|poisson)\(|uuid4|os\.urandom|to_thread|\.wait_for\(|asyncio\.Condition"
)


def test_no_wall_clock_and_no_global_randomness() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if BANNED.search(line) and ESCAPE not in line
    ]
    assert wrong == []


def test_files_and_functions_stay_short() -> None:
    wrong = []
    tests = [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in (ROOT / "tests").rglob("*.py")]
    for path, tree in [*trees(), *tests]:
        lines = path.read_text(encoding="utf-8").count("\n")
        if lines > FILE_LINES:
            wrong.append(f"{path.relative_to(ROOT)} has {lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > FUNCTION_LINES:
                    wrong.append(f"{path.relative_to(ROOT)}:{node.name} has {length} lines")
    assert wrong == []


def test_public_classes_and_functions_say_what_they_are() -> None:
    wrong = []
    for path, tree in trees():
        if not ast.get_docstring(tree) and path.read_text(encoding="utf-8").strip():
            wrong.append(f"{path.relative_to(ROOT)}: module")
        for node in tree.body:
            public = isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name[0] != "_"
            if public and not ast.get_docstring(node):
                wrong.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert wrong == []


def seam_fields() -> list[tuple[str, str]]:
    seams = [ROOT / "orchestrator" / name for name in ("ports.py", "messages.py", "turn.py")]
    return [
        (node.name, item.target.id)
        for tree in (ast.parse(path.read_text(encoding="utf-8")) for path in seams)
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and {"int", "float"} & set(re.findall(r"\w+", ast.unparse(item.annotation)))
        and "Mapping" not in ast.unparse(item.annotation)
    ]


# Counts whose noun is the unit, and names that are not quantities.
PLAIN = {
    *("slots", "busy_slots", "workers", "epoch", "rack", "idle", "reused", "order", "tokens", "ages_s"),
    *("scope", "first", "blocks", "key", "session_id", "ordinal"),
}


@pytest.mark.parametrize(("message", "name"), seam_fields())
def test_quantities_on_the_seams_end_in_their_unit(message: str, name: str) -> None:
    assert name in PLAIN or name.endswith(UNIT_ENDINGS), f"{message}.{name} has no unit"


def test_every_folder_under_a_package_is_a_package() -> None:
    folders = {path.parent for path in sources()}
    assert [str(folder.relative_to(ROOT)) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


# Names that nothing here uses, each with its reason.
UNUSED = {
    "NullSelector.get_map": "part of what a selector is",
    "VirtualLoop.call_later": "asyncio calls it",
    "VirtualLoop.call_soon_threadsafe": "asyncio calls it",
    "VirtualLoop.run_forever": "asyncio calls it",
}


def test_every_public_name_is_used_outside_the_tests() -> None:
    used = words_of_documents()
    for _, tree in trees():
        used |= names_used(tree)
    unused = [
        f"{module_name(path)}: {name}"
        for path, tree in trees()
        for name in public_names(tree)
        if not any(part.startswith("_") for part in name.split("."))
        and name.split(".")[-1] not in used
        and name not in UNUSED
    ]
    assert unused == []


def test_tests_lie_in_folders_that_mirror_the_packages() -> None:
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for package in PACKAGES for path in (tests / package).rglob("*.py")}
    assert [str(folder) for folder in sorted(folders) if not (ROOT / folder).is_dir()] == []
    top = {path.name for path in tests.glob("*.py")}
    assert top == {"paths.py", "source_trees.py", "test_architecture.py", "test_docs_width.py", "test_readme.py"}


def lists_of_names(tree: ast.Module, names: set[str], length: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the displays (tuples, lists, sets, dicts by key) that hold so many of the names."""
    for node in ast.walk(tree):
        items = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        named = [item.value for item in items if isinstance(item, ast.Constant) and item.value in names]
        if len(named) >= length:
            yield node.lineno, named


# These name fields of messages and of turns under way, which some signals and columns share.
NAMES_OF_FIELDS = {"orchestrator/catalogue.py", "orchestrator/ledger.py", "scenarios/conformance/readings.py"}


def test_signals_and_turn_columns_stand_in_one_catalogue() -> None:
    columns = {row.name for row in TURN_COLUMNS if row.unit}
    signals = {name for row in ALL for name in (row.name, *row.columns)}
    wrong = []
    for path, tree in trees():
        name = path.relative_to(ROOT).as_posix()
        if name not in NAMES_OF_FIELDS:
            lists = [*lists_of_names(tree, signals, 3), *lists_of_names(tree, columns, 5)]
            wrong += [f"{name}:{line} lists {named}; take them from orchestrator/catalogue.py" for line, named in lists]
    assert wrong == []


# A variable of such a name says nothing of what it holds, a function nothing of what it returns.
SAY_NOTHING = {"found", "own", "one", "made", "told", "said", "whole", "lying", "bear", "conceive"}


def test_names_say_what_they_hold() -> None:
    files = [
        *trees(),
        *((path, ast.parse(path.read_text(encoding="utf-8"))) for path in (ROOT / "tests").rglob("*.py")),
    ]
    vague = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path, tree in files
        for line, name in bound_names(tree)
        if name.strip("_") in SAY_NOTHING
    ]
    assert vague == []
