"""What the tables of all laws share, and the two tables that fit any slot: `hold`, and a law of the user's own file."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Positive, ScenarioTable

Plain = bool | int | float | str


class DerivedTable(ScenarioTable):
    """A table derived from a class of `policies`: its fields are the keywords of that class's constructor."""

    source: ClassVar[type[Any] | None] = None  # Any: a class of any constructor

    @model_validator(mode="after")
    def _keeps_the_rules(self) -> DerivedTable:
        values = {name: getattr(self, name) for name in type(self).model_fields}
        for rule in getattr(self.source, "rules", ()):
            complaint = rule(values)
            if complaint:
                raise ValueError(complaint)
        return self


class RouterPart(DerivedTable):
    """A routing law's own table."""

    kind: str


class LawPart(DerivedTable):
    """A control law's own table. `period_s` overrides the slot's period in `[control]`."""

    period_s: Positive | None = None
    kind: str


class Hold(LawPart):
    """Change nothing."""

    kind: Literal["hold"]


class FileLaw(LawPart):
    """A law of the user's own: the class `law` in the Python file `file`, made with `parameters`."""

    kind: Literal["file"]
    file: str
    law: str
    parameters: dict[str, Plain | tuple[Plain, ...]] = Field(default_factory=dict)
