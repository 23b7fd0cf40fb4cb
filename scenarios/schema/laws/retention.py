"""Tables of the retention laws."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from scenarios.schema.base import Count, NotNegative, Positive
from scenarios.schema.laws.part import FileLaw, Hold, LawPart


class Lru(LawPart):
    """Least recently used, in a shared tier of so many tokens (None: its memory)."""

    kind: Literal["lru"]
    capacity_tokens: Count | None = None
    keep_compacted: bool = False


class Ttl(LawPart):
    """A fixed life after the last use."""

    kind: Literal["ttl"]
    ttl_s: Positive
    demote_s: Positive | None = None
    capacity_tokens: Count | None = None


class ReuseClassifier(LawPart):
    """Lives by hazard of reuse, cost of rebuilding and price of the tier."""

    kind: Literal["reuse_classifier"]
    rebuild_price_per_s: Positive
    prior_contexts: NotNegative = 20.0
    capacity_tokens: Count | None = None


Retention = Annotated[Hold | FileLaw | Lru | Ttl | ReuseClassifier, Field(discriminator="kind")]
