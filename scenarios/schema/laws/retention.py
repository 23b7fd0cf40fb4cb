"""Tables of the retention laws."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scenarios.schema.laws.part import FileLaw, Hold

Retention = Annotated[Hold | FileLaw, Field(discriminator="kind")]
