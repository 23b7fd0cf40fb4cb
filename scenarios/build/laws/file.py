"""A law from the user's own file: `path/to/law.py`, a class in it, its parameters and the slot that it fills."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

from orchestrator.control import Law
from orchestrator.messages import Slot
from orchestrator.ports import Every, Router
from scenarios.errors import UserError, nearest
from scenarios.schema.laws import Candidate, FileLaw
from scenarios.schema.scenario import Scenario

FORM = "must be path/to/law.py:Class, or path/to/law.py:Class(name=value, ...)"
SLOT_OF = {
    "AdmissionReading": "admission",
    "BatchReading": "batching",
    "CapacityReading": "capacity",
    "DemandReading": "demand",
    "RetentionReading": "retention",
}


def parsed(text: str) -> FileLaw:
    """Return the table that `law.py:Class(name=value, ...)` means; raises UserError where it means none."""
    match = re.fullmatch(r"(?P<file>.+\.py):(?P<law>[A-Za-z_]\w*)(?P<call>\(.*\))?", text.strip())
    if match is None:
        raise UserError(f"{text}: {FORM}")
    parameters: dict[str, Any] = {}
    if match["call"]:
        try:
            call = ast.parse(f"f{match['call']}", mode="eval").body
            assert isinstance(call, ast.Call)
            parameters = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
            if call.args or "None" in parameters:
                raise ValueError("positional")
        except (SyntaxError, ValueError) as error:
            raise UserError(f"{text}: {FORM}, with plain values") from error
    return FileLaw(kind="file", file=match["file"], law=match["law"], parameters=parameters)


def code_of(scenario: Scenario) -> list[str]:
    """Return the files whose code a run of this scenario imports, each once."""
    named = [getattr(candidate, slot) for candidate in scenario.candidates for slot in ("routing", *get_args(Slot))]
    return list(dict.fromkeys(part.file for part in named if isinstance(part, FileLaw)))


def class_of(part: FileLaw) -> type[Any]:
    """Import the file and return the class.

    Raises
    ------
    UserError
        No such file, it does not import, or it has no such class.
    """
    path = Path(part.file)
    if not path.is_file():
        raise UserError(f"{part.file}: no such file")
    name = f"steadyflow_law_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's file raises is the user's to read
        raise UserError(f"{part.file}: does not import: {type(error).__name__}: {error}") from error
    law = getattr(module, part.law, None)
    if not isinstance(law, type):
        classes = [k for k, v in vars(module).items() if isinstance(v, type) and v.__module__ == name]
        raise UserError(f"{part.file}: has no class {part.law}{nearest(part.law, classes)}")
    return law


def slot_of(law: type[Any], part: FileLaw) -> str:
    """Return the slot that a class fills, by the reading that `act` takes; a class with `choose` is a router."""
    if callable(getattr(law, "choose", None)):
        return "routing"
    act = getattr(law, "act", None)
    hints = [] if act is None else [str(p.annotation) for p in inspect.signature(act).parameters.values()]
    for hint in hints:
        for reading, slot in SLOT_OF.items():
            if reading in hint:
                return slot
    raise UserError(
        f"{part.file}: {part.law} fills no slot: it needs `act(self, y: AdmissionReading)` (or another slot's "
        f"reading), or `choose(self, turn, pool)`"
    )


def _construct(part: FileLaw, *args: Any) -> Any:
    law = class_of(part)
    parameters: Mapping[str, Any] = part.parameters
    try:
        return law(*args, **parameters)
    except TypeError as error:
        raise UserError(f"{part.file}: {part.law} cannot be made with {dict(parameters)}: {error}") from error


def made_from_file(part: FileLaw, every: Every) -> Law:
    """Return the user's law, made as `Class(cadence, **parameters)`."""
    return cast(Law, _construct(part, every))


def router_from_file(part: FileLaw) -> Router:
    """Return the user's router, made as `Class(**parameters)`."""
    return cast(Router, _construct(part))


def with_policy_file(scenario: Scenario, text: str) -> tuple[Scenario, str]:
    """Add a candidate: the first one, with the user's law in its slot. Return the scenario and the candidate's name."""
    part = parsed(text)
    slot = slot_of(class_of(part), part)
    assert slot in ("routing", *get_args(Slot))
    names = [candidate.name for candidate in scenario.candidates]
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", part.law).lower()
    while name in names:
        name += "_own"
    raw = scenario.model_dump(mode="json")
    first = Candidate.model_validate({**raw["candidates"][0], "name": name, slot: part.model_dump(mode="json")})
    raw["candidates"].append(first.model_dump(mode="json"))
    return Scenario.model_validate(raw), name
