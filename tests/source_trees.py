"""The sources of the packages as syntax trees, for the tests of the architecture: files, imports, names and uses."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.paths import ROOT

PACKAGES = ("orchestrator", "policies", "plant", "scenarios")
WORD = re.compile(r"\w+")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


@cache
def sources() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache
def trees() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in sources()]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.Module) -> Iterator[str]:
    """Yield every module that a file imports, and `module.name` for every name that it takes from one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield f"{node.module}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run when a module is imported, and those below `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(tree):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield child
            yield from outside_functions(child)


def import_graph() -> dict[str, set[str]]:
    """Return, for each module, the modules of the packages that it imports outside its functions."""
    modules = {module_name(path): tree for path, tree in trees()}
    graph: dict[str, set[str]] = {name: set() for name in modules}
    for name, tree in modules.items():
        for node in outside_functions(tree):
            if isinstance(node, ast.Import):
                graph[name] |= {alias.name for alias in node.names} & modules.keys()
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    graph[name] |= {submodule if submodule in modules else f"{node.module}"} & modules.keys()
        graph[name].discard(name)
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return every group of nodes that reach each other, sorted."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        reach[start], open_nodes = set(), [start]
        while open_nodes:
            for node in graph[open_nodes.pop()]:
                if node not in reach[start]:
                    reach[start].add(node)
                    open_nodes.append(node)
    groups = {tuple(sorted(b for b in reach[a] if a in reach[b])) for a in graph if a in reach[a]}
    return [list(group) for group in sorted(groups)]


def public_names(tree: ast.Module) -> Iterator[str]:
    """Yield the public names of a module: functions, classes, constants, and `Class.method`.

    A method with a decorator of a framework (`@app.command()`, `@rule()`) is called by that framework.
    """
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not called_by_framework(node):
            yield node.name
        elif isinstance(node, ast.ClassDef):
            yield node.name
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not called_by_framework(item):
                    yield f"{node.name}.{item.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def called_by_framework(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    plain = {"property", "staticmethod", "classmethod", "cached_property", "cache", "lru_cache", "contextmanager"}
    names = {ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in node.decorator_list}
    return bool(names - plain)


def names_used(tree: ast.Module) -> set[str]:
    """Return the words by which a module may use a name: reads, attributes, imports, and strings that are one word."""
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            used.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            used.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            used |= set(WORD.findall(node.value))
        elif isinstance(node, ast.ImportFrom):
            used |= {alias.name for alias in node.names}
    return used


def words_of_documents() -> set[str]:
    """Return the words in the code of documents and notebooks, and in the build files."""
    words: set[str] = set()
    for pattern in ("docs/**/*", "notebooks/*.ipynb", "README.md", "Makefile", "pyproject.toml"):
        for path in ROOT.glob(pattern):
            if path.is_file() and path.suffix in ("", ".md", ".toml", ".py", ".ipynb"):
                words |= (
                    names_used(ast.parse(code_of(path))) if path.suffix == ".py" else set(WORD.findall(code_of(path)))
                )
    return words


def code_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return "\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code")
    return "\n".join(CODE.findall(text)) if path.suffix == ".md" else text


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of everything that a file names: variables, attributes, arguments, functions, classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
