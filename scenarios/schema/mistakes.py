"""Mistakes in a scenario file, each in one line: the place, what is wrong there, and what would be right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from scenarios.errors import nearest
from scenarios.schema.expect import TAGS
from scenarios.schema.scenario import Scenario

Raw = dict[str, Any]  # Any: what TOML holds


def mistakes(error: ValidationError, raw: Raw) -> str:
    """Return the first mistake in one line, or all keys that are missing."""
    problems = error.errors()
    missing = [_place(each["loc"], raw) for each in problems if each["type"] == "missing"]
    problem = sorted(problems, key=lambda e: e["type"] != "extra_forbidden")[0]
    place = _place(problem["loc"], raw)
    kind, given = problem["type"], problem.get("input")
    if kind == "extra_forbidden":
        key, known = str(problem["loc"][-1]), _keys_at(problem["loc"])
        if key in _KEYS:
            return f"{place}: is no key of this part, though there is one of that name elsewhere"
        near = nearest(key, known)
        return f"{place}: unknown key{near or '; there are ' + ', '.join(known)}"
    if kind == "missing":
        return f"{place}: is missing" if len(missing) == 1 else f"these keys are missing: {', '.join(missing)}"
    if kind == "union_tag_invalid":
        tag = str(problem["ctx"]["tag"])
        tags = [t.strip().strip("'") for t in str(problem["ctx"]["expected_tags"]).split(",")]
        return f"{place}.kind: there is no kind {tag!r}{nearest(tag, tags)}; there are {', '.join(tags)}"
    if kind == "union_tag_not_found":
        return f"{place}.kind: is missing"
    message = _worded(problem["msg"].removeprefix("Value error, "))
    if problem["loc"][:1] == ("expect",) and kind in ("model_type", "model_attributes_type", "dict_type"):
        message = "must be a word in quotes, { value = 1.0, rel = 0.05 } or { at_least = 1.0 }"
    if kind == "too_short":
        message = _too_few(str(problem["loc"][-1]), problem["ctx"]["min_length"])
    if place and kind != "value_error":
        return f"{place} = {given!r}: {message}"
    return f"{place}: {message}" if place else message


def _too_few(key: str, least: int) -> str:
    if key == "pools":
        return 'at least one pool is needed, as [{ configuration = "...", workers = N }]'
    return f"at least {'one is' if least == 1 else f'{least} are'} needed"


def _worded(message: str) -> str:
    """Return what pydantic says in the words of a TOML file."""
    for theirs, ours in (
        ("Input should be a valid dictionary or object to extract fields from", "must be a table"),
        ("Input should be a valid dictionary", "must be a table"),
        ("Input should be a valid tuple", "must be a list"),
        ("Input should be", "must be"),
    ):
        message = message.replace(theirs, ours)
    return message.split(", unable to parse")[0].split(" or instance of ")[0]


def _place(loc: tuple[int | str, ...], raw: Raw) -> str:
    """Return a location as a path of keys; list entries by name, and without the tags of unions."""
    steps: list[str] = []
    here: Any = raw
    for step in loc:
        if isinstance(here, list) and isinstance(step, int):
            here = here[step] if step < len(here) else None
            steps.append(str(here.get("name", step)) if isinstance(here, dict) else str(step))
        elif isinstance(here, dict) and step in here:
            here = here[step]
            steps.append(str(step))
        elif (isinstance(here, dict) and here.get("kind") == step) or step in TAGS:
            continue
        else:
            steps.append(str(step))
            here = None
    return ".".join(steps)


def models(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    """Yield a table and every table within it, each once."""
    if model in seen:
        return
    seen.add(model)
    yield model
    for info in model.model_fields.values():
        for inner in _inside(info.annotation):
            yield from models(inner, seen)


def _keys_at(loc: tuple[int | str, ...]) -> list[str]:
    """Return the keys that the table at a place has."""
    here: list[type[BaseModel]] = [Scenario]
    for step in loc[:-1]:
        inner = [inner_model for model in here for inner_model in tables_in(model, str(step))]
        of_kind = [model for model in here if step in get_args(_kind(model))]
        here = inner or of_kind or here
    return sorted({name for model in here for name in model.model_fields})


def tables_in(model: type[BaseModel], key: str) -> list[type[BaseModel]]:
    """Return the tables that a key of a table may hold."""
    return list(_inside(model.model_fields[key].annotation)) if key in model.model_fields else []


def _kind(model: type[BaseModel]) -> Any:  # Any: a type expression
    return model.model_fields["kind"].annotation if "kind" in model.model_fields else None


def _inside(annotation: Any) -> Iterator[type[BaseModel]]:  # Any: a type expression
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _inside(argument)


_KEYS = sorted({name for model in models(Scenario, set()) for name in model.model_fields})
TABLES = frozenset(
    name
    for model in models(Scenario, set())
    for name, info in model.model_fields.items()
    if any(True for _ in _inside(info.annotation))
)


# ------------------------------------------------ the resolved scenario
