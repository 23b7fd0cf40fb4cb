"""Scenario tables of the registered laws, derived from the laws' constructors.

A keyword of the constructor becomes a key of the table: its name, its type with bounds, its default. A parameter that
is itself a law (or another class of `policies`) becomes a table within the table. `LAW_TABLES` holds them by slot and
kind; `Admission` .. `Routing` are what a candidate's slots accept.
"""

from __future__ import annotations

import copyreg
import inspect
from collections.abc import Mapping
from functools import cache, reduce
from operator import getitem, or_
from pkgutil import resolve_name
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import Field, create_model

from scenarios.schema.laws.part import DerivedTable, FileLaw, Hold, LawPart, RouterPart
from scenarios.schema.laws.registry import LAWS, SLOTS


@cache
def _kinds() -> Mapping[type[Any], tuple[str, str]]:
    """Return the slot and the kind of every registered class."""
    return {resolve_name(path): (slot, kind) for slot, laws in LAWS.items() for kind, path in laws.items()}


@cache
def table_of(source: type[Any]) -> type[Any]:  # Any: a class of any constructor, a table of any keys
    """Return the table whose keys are the keywords of a class's constructor."""
    slot, kind = _kinds().get(source, ("", ""))
    base = DerivedTable if not slot else RouterPart if slot == "routing" else LawPart
    hints = get_type_hints(source.__init__, include_extras=True)
    keys: dict[str, Any] = {"kind": (Literal[kind], ...)} if slot else {}
    for name, parameter in inspect.signature(source).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            default = ... if parameter.default is parameter.empty else parameter.default
            keys[name] = (_as_table(hints[name]), default)
    summary = inspect.getdoc(source) or ""
    derived = create_model(source.__name__, __base__=base, __doc__=summary.partition("\n\n")[0], **keys)
    table = cast(type[DerivedTable], derived)
    table.source = source
    copyreg.pickle(table, _pickled)  # scenarios cross into worker processes, and no module has this class as a name
    return table


def _pickled(table: DerivedTable) -> tuple[Any, ...]:  # Any: what pickle asks for
    return _restored, (table.source, dict(table.__dict__), table.model_fields_set)


def _restored(source: Any, values: dict[str, Any], given: set[str]) -> Any:  # Any: a class, its keys, its table
    return table_of(source).model_construct(given, **values)


def _as_table(hint: Any) -> Any:  # Any: a type expression
    """Return a type expression with every class of `policies` in it replaced by that class's table."""
    if isinstance(hint, type) and hint.__module__.startswith("policies."):
        return table_of(hint)
    inner = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        tables = [_as_table(argument) for argument in inner if argument is not NoneType]
        choice = reduce(or_, tables)
        if len(tables) > 1 and all(
            isinstance(argument, type) and issubclass(argument, DerivedTable) for argument in tables
        ):
            choice = Annotated[choice, Field(discriminator="kind")]
        return choice | None if NoneType in inner else choice
    if get_origin(hint) is tuple:
        return GenericAlias(tuple, tuple(argument if argument is ... else _as_table(argument) for argument in inner))
    if get_origin(hint) is Annotated:
        return getitem(Annotated, (_as_table(inner[0]), *inner[1:]))
    return hint


# Any: a table's keys are its law's, which no type checker knows.
LAW_TABLES: Mapping[str, Mapping[str, type[Any]]] = {
    slot: {kind: table_of(resolve_name(path)) for kind, path in laws.items()} for slot, laws in LAWS.items()
}

if TYPE_CHECKING:
    Admission = LawPart
    Batching = LawPart
    Capacity = LawPart
    Demand = LawPart
    Retention = LawPart
    Routing = RouterPart | FileLaw
else:

    def _any_of(*tables: type[DerivedTable]) -> Any:  # Any: a type expression
        return Annotated[reduce(or_, tables), Field(discriminator="kind")]

    Admission, Batching, Capacity, Demand, Retention = (
        _any_of(Hold, FileLaw, *LAW_TABLES[slot].values()) for slot in SLOTS
    )
    Routing = _any_of(*LAW_TABLES["routing"].values(), FileLaw)
