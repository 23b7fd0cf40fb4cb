"""The suite itself: what is asked of a control law, each question by itself.

finite          every number a command holds is one that an actuator can take
own fields      the command is of its own slot's type, and names only configurations that exist
deterministic   two laws made alike answer alike
pure            the reading is not changed, an earlier command is not changed later, and the source uses no clock,
                chance or input
quiet           in a world that never changes, no command swings to and fro
bounded         a long saturation leaves no more behind than a short one: no windup, no growing memory
monotone        what `monotone = ((reading field, command field, sign), ...)` of the class claims, holds
"""

from __future__ import annotations

import ast
import copy
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from orchestrator.control import EMPTY, Law
from orchestrator.messages import Commands, Readings, RetentionCommand, Slot
from scenarios.conformance.finding import Finding, Nonconforming
from scenarios.conformance.readings import ROLES, readings, sequences
from scenarios.conformance.steady_simulations import quiet_when_nothing_changes, saturation_is_forgotten, with_applied

Make = Callable[[], Law]
BANNED = {"time", "random", "os", "sys", "socket", "subprocess", "threading", "asyncio", "datetime", "secrets"}
OPTIONS = settings(
    max_examples=25,
    deadline=None,
    database=None,
    derandomize=True,
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def check(make: Make, slot: Slot) -> list[Finding]:
    """Put every question to the laws that `make` makes; return one finding each."""
    questions: dict[str, Callable[[], None]] = {
        "finite, in its own fields, deterministic and pure": lambda: answers_are_sound(make, slot),
        "no clock, chance or input in its source": lambda: source_is_pure(type(make())),
        "quiet in a world that never changes": lambda: quiet_when_nothing_changes(make, slot),
        "bounded under saturation": lambda: saturation_is_forgotten(make, slot),
        "monotone where it claims": lambda: claims_hold(make, slot),
    }
    if getattr(type(make()), "excitation", False):
        del questions["quiet in a world that never changes"], questions["bounded under saturation"]
    return [asked(name, ask) for name, ask in questions.items()]


def asked(name: str, ask: Callable[[], None]) -> Finding:
    """Put one question; whatever the law raises is an answer too."""
    try:
        ask()
    except Nonconforming as error:
        return Finding(name, str(error))
    except Exception as error:  # a law that raises does not conform, whatever it raises
        return Finding(name, f"raises {type(error).__name__}: {error}")
    return Finding(name, "")


# ------------------------------------------------ sound answers
def answers_are_sound(make: Make, slot: Slot) -> None:
    """Show the law any sequence of readings."""

    @OPTIONS
    @given(sequences(slot))
    def ask(shown: list[Readings]) -> None:
        first, second = make(), make()
        applied: Commands = EMPTY[slot]
        commands: list[tuple[Commands, Commands]] = []
        for reading in shown:
            y = with_applied(reading, applied)
            before = copy.deepcopy(y)
            command = first.act(y)
            if y != before:
                raise Nonconforming(f"the reading was changed: {before} became {y}")
            if command != second.act(y):
                raise Nonconforming(f"two laws made alike answer {y} differently")
            complaint = unsound(slot, command)
            if complaint:
                raise Nonconforming(f"{complaint} in {command} for {y}")
            commands.append((command, copy.deepcopy(command)))
            applied = command
        for command, as_given in commands:
            if command != as_given:
                raise Nonconforming(f"a command was changed after it was given: {as_given} became {command}")

    ask()


def unsound(slot: Slot, command: Commands) -> str:
    """Return what an actuator could not take of a command; empty when it is sound."""
    if type(command) is not type(EMPTY[slot]):
        return f"a {type(command).__name__} is no command of {slot}"
    for name, value in _numbers(command):
        if isinstance(value, float) and math.isnan(value):
            return f"{name} is NaN"
        if value < 0:
            return f"{name} is negative"
        if name.endswith("_ratio") and value > 1:
            return f"{name} exceeds 1"
        unbounded = name in ("release_per_s", "demote_after_s", "discard_after_s")
        if math.isinf(value) and not unbounded:
            return f"{name} is infinite"
        if name in ("batch_cap_turns", "chunk_cap_tokens") and value < 1:
            return f"{name} must be at least 1"
        integral = ("in_flight_cap_turns", "class_cap_turns", "reserve_turns", "batch_cap_turns", "target_workers")
        if name in integral and not isinstance(value, int):
            return f"{name} must be a whole number"
    named = [*(getattr(command, "target_workers", None) or ()), *(getattr(command, "floor_workers", None) or ())]
    strange = [name for name in named if name not in ROLES]
    if strange:
        return f"configuration {strange[0]} does not exist (there are {', '.join(ROLES)})"
    if isinstance(command, RetentionCommand):
        wrong = [rule.kind for rule in command.rules or () if rule.discard_after_s < rule.demote_after_s]
        if wrong:
            return f"the rule of {wrong[0]} discards before it demotes"
    return ""


def _numbers(command: Any) -> Iterator[tuple[str, float]]:
    """Yield every number of a command by the name of its field."""
    for f in fields(command):
        yield from _within(f.name, getattr(command, f.name))


def _within(name: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _within(name, inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from _within(name, inner)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _numbers(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def source_is_pure(law: type[Any]) -> None:
    """Read the class's file: a law imports no clock, no chance and nothing that does input or output."""
    try:
        tree = ast.parse(inspect.getsource(inspect.getmodule(law) or law))
    except (OSError, TypeError):
        return  # made at a prompt: there is no source to read
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [str(node.module)]
            for name in names:
                if name.split(".")[0] in {*BANNED, "plant", "scenarios"}:
                    raise Nonconforming(f"line {node.lineno} imports {name}")
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("open", "print", "input")
        ):
            raise Nonconforming(f"line {node.lineno} calls {node.func.id}()")


# ------------------------------------------------ claims
def claims_hold(make: Make, slot: Slot) -> None:
    """Raise one field of a reading, all else equal: the command must move as the class claims."""
    for seen, commanded, sign in getattr(type(make()), "monotone", ()):
        _claim_holds(make, slot, seen, commanded, sign)


def _claim_holds(make: Make, slot: Slot, seen: str, commanded: str, sign: int) -> None:
    @OPTIONS
    @given(st.lists(readings(slot), min_size=1, max_size=3), st.sampled_from([0.1, 1.0, 10.0, 1e4]))
    def ask(shown: list[Readings], more: float) -> None:
        value = getattr(shown[-1], seen)
        if value is None:
            return
        raised = [*shown[:-1], replace(shown[-1], **{seen: type(value)(value + more)})]
        low, high = (_last(make(), shown_one, commanded) for shown_one in (shown, raised))
        if low is not None and high is not None and sign * (high - low) < -1e-6 * max(1.0, abs(low), abs(high)):
            raise Nonconforming(
                f"{commanded} should go {'up' if sign > 0 else 'down'} with {seen}: {low:g}, then {high:g}"
            )

    ask()


def _last(law: Law, shown: list[Readings], commanded: str) -> float | None:
    value = None
    for k, y in enumerate(shown):
        at_s = 1e6 * (k + 1)  # far apart and fresh, so that only the field in question differs
        value = getattr(law.act(replace(y, now_s=at_s, at_s=at_s)), commanded)
    return None if value is None else float(value)
