"""Tables of the demand laws."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scenarios.schema.laws.part import FileLaw, Hold

Demand = Annotated[Hold | FileLaw, Field(discriminator="kind")]
