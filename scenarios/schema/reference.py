"""The reference of the scenario file, made from the schema: every table and key with type, unit, default, meaning."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from orchestrator.catalogue import unit_of
from scenarios.schema.files import library
from scenarios.schema.mistakes import tables_in
from scenarios.schema.scenario import Scenario

INTRODUCTION = """# The scenario file

Made by `steadyflow schema`. One TOML file asks one question. Every table and key follows, with its
type, unit, default, meaning, and a value from a shipped scenario. A key without a default must be stated. `--set` and
`--grid` use the same paths. `steadyflow schema --json` prints a JSON Schema, which editors read for TOML too.
"""
HEAD = "| key | type | unit | default | meaning | example |\n|---|---|---|---|---|---|"
MEANINGS = {
    "title": "what the scenario shows, in a line",
    "question": "what it asks; the report answers it",
    "seed": "the seed of every random stream",
    "horizon_s": "when the run ends",
    "warmup_s": "so much from the start is not judged",
    "drain_s": "so long after the horizon turns in flight may end",
    "candidates": "the laws to compare, each with a name and one law a slot",
    "expect": "by candidate, what must hold of its run",
    "classes": "service classes with their objectives",
    "ttft_s": "objective: time from arrival to the first token",
    "tpot_s": "objective: mean time per further token",
    "weight": "share in the weighted fair order",
    "priority": "higher goes first",
    "price_per_mtoken": "price of a million output tokens",
    "max_release_per_s": "fastest rate at which the door lets turns in",
    "slew_per_s2": "fastest change of that rate",
    "queue_limit_turns": "longest queue at the door; what comes beyond is rejected",
    "order": "who leaves the queue first",
    "smoothing_s": "time constant of the smoothed backlog that laws read",
    "allow_period_below_age": "loops that may act faster than their readings renew",
    "midnight_s": "when in the run a day begins",
    "period_s": "time between two samples, or two acts",
    "age_s": "how old a sample is when it is read",
    "noise_ratio": "standard deviation of a reading over its value",
    "drop_ratio": "share of samples that are lost",
    "routers": "how many routers decide, each with its own snapshot",
    "snapshot_s": "how often a router's view of the loads is renewed",
    "signal_bin_s": "width of a bin of the record; none: 1/5600 of the horizon",
    "slots": "turns that a worker, or the pool, serves at once",
    "dead_time_s": "time from release to the decode pool",
    "rate_per_s": "arrivals per second",
    "workers": "number of workers",
    "configuration": "name of the configuration",
    "configurations": "prepared configurations, by name",
    "racks": "racks of workers, each behind one uplink",
    "pools": "workers that begin in a configuration",
    "faults": "what befalls the plant, and when",
    "role": "what a worker of the configuration does",
    "times": "how long a step takes",
    "kv_capacity_tokens": "KV tokens that fit into a worker",
    "chunk_tokens": "most new tokens of one fill chunk",
    "gpus": "GPUs of one worker",
    "load_s": "time to load the configuration",
    "warm_s": "time to warm it up after loading",
    "shape": "shape of the distribution",
    "mean_tokens": "mean of the distribution",
    "mean_s": "mean of the distribution",
    "cv_ratio": "standard deviation over mean",
    "share": "share of the turns",
    "path": "file, looked up from the working folder",
    "name": "what it is called",
}
_WORDS = {int: "integer", float: "number", str: "text", bool: "true or false"}
_BOUNDS = (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<="))


def reference() -> str:
    """Return the reference as Markdown."""
    examples = dict(_examples([tomllib.loads(p.read_text(encoding="utf-8")) for p in library().values()]))
    parts = [INTRODUCTION]
    for path, model in _tables():
        kind = _kind_of(model)
        title = f"`{path or 'at the top'}`" if path else "At the top"
        parts.append(f"## {title}" + (f', kind = "{kind}"' if kind else ""))
        parts.append(_first_lines(inspect.getdoc(model) or ""))
        rows = [_row(name, info, model, examples) for name, info in model.model_fields.items() if name != "kind"]
        parts.append("\n".join([HEAD, *rows]) if rows else "No further keys.")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _tables() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield every table with the first path at which a file may have it, outer tables first."""
    seen: set[type[BaseModel]] = set()
    waiting: list[tuple[str, type[BaseModel]]] = [("", Scenario)]
    while waiting:
        path, model = waiting.pop(0)
        if model in seen:
            continue
        seen.add(model)
        yield path, model
        inner = [(f"{path}.{key}".lstrip("."), table) for key in model.model_fields for table in tables_in(model, key)]
        waiting[:0] = inner


def _kind_of(model: type[BaseModel]) -> str:
    return str(get_args(model.model_fields["kind"].annotation)[0]) if "kind" in model.model_fields else ""


def _first_lines(text: str) -> str:
    return re.split(r"\n\s*\n(?:Parameters|Raises)\n", text)[0].replace("|", "\\|")


def _row(name: str, info: FieldInfo, model: type[BaseModel], examples: Mapping[str, str]) -> str:
    bounds = " ".join(
        f"{sign} {value:g}"
        for constraint in info.metadata
        for key, sign in _BOUNDS
        if (value := getattr(constraint, key, None)) is not None
    )
    kind = f"{_type(info.annotation)} {bounds}".strip()
    default = "stated" if info.is_required() else _value(info.get_default(call_default_factory=True))
    cells = [f"`{name}`", kind, unit_of(name), default, _meaning(name, model), examples.get(name, "")]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(annotation: Any) -> str:  # Any: a type expression
    inner, origin = get_args(annotation), get_origin(annotation)
    if origin is Literal:
        return " or ".join(f'"{item}"' if isinstance(item, str) else str(item) for item in inner)
    if origin in (Union, UnionType):
        texts = dict.fromkeys(_type(item) for item in inner if item is not NoneType)
        return " or ".join(texts)
    if origin is dict:
        return f"{_type(inner[1])} by name"
    if origin in (tuple, list):
        return f"list of {' and '.join(dict.fromkeys(_type(item) for item in inner if item is not ...))}"
    if hasattr(annotation, "__metadata__"):
        return _type(inner[0])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    if isinstance(annotation, type) and hasattr(annotation, "__members__"):
        return " or ".join(f'"{item.value}"' for item in annotation)  # type: ignore[attr-defined]  # an Enum
    return _WORDS.get(annotation, "value")


def _value(value: Any) -> str:  # Any: a default
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, BaseModel | Mapping):
        return "its own defaults"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[]" if not value else "[" + ", ".join(map(_value, value)) + "]"
    return f"{value:g}" if isinstance(value, float) else f'"{value}"' if isinstance(value, str) else str(value)


def _meaning(name: str, model: type[BaseModel]) -> str:
    """Return what the docstring of the law, or of the table, says of a key."""
    source = getattr(model, "source", None)
    text = inspect.getdoc(source) or "" if source is not None else ""
    match = re.search(rf"^(?:[\w, ]+, )?{name}(?:, [\w, ]+)? : [^\n]*\n((?:    [^\n]*\n?)+)", text, flags=re.MULTILINE)
    if match is not None:
        return " ".join(match[1].split()).rstrip(".")
    return MEANINGS.get(name, "")


def _examples(files: Sequence[Any]) -> Iterator[tuple[str, str]]:  # Any: what TOML holds
    """Yield keys with a short value from the files; the first one stands, so it is yielded last."""
    for file in reversed(files):
        for key, value in _plain(file):
            text = _value(value)
            if len(text) <= 40:
                yield key, f"`{text}`"


def _plain(part: Any) -> Iterator[tuple[str, Any]]:  # Any: what TOML holds
    if isinstance(part, Mapping):
        for key, value in part.items():
            if isinstance(value, str | int | float):
                yield key, value
            yield from _plain(value)
    elif isinstance(part, list):
        for item in part:
            yield from _plain(item)
