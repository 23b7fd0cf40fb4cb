"""What the tables of all laws share, and the two laws that fit any slot."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from scenarios.schema.base import Positive, ScenarioTable

Plain = bool | int | float | str


class LawPart(ScenarioTable):
    """A law's own table. `period_s` overrides the slot's period in `[control]`."""

    period_s: Positive | None = None


class Hold(LawPart):
    """Change nothing."""

    kind: Literal["hold"]


class FileLaw(LawPart):
    """A law of the user's own: the class `law` in the Python file `file`, made with `parameters`."""

    kind: Literal["file"]
    file: str
    law: str
    parameters: dict[str, Plain | tuple[Plain, ...]] = Field(default_factory=dict)
