"""From a retention law's table to the law."""

from __future__ import annotations

from typing import assert_never

from orchestrator.control import Law
from orchestrator.ports import Every
from policies.retention.hold import Hold as HoldRetention
from policies.retention.lru import Lru
from policies.retention.reuse_classifier import ReuseClassifier
from policies.retention.ttl import Ttl
from scenarios.build.laws.file import made_from_file
from scenarios.schema.laws import FileLaw, Hold
from scenarios.schema.laws import retention as parts


def retention(part: parts.Retention, period_s: float) -> Law:
    """Return the retention law that a table describes, acting every `period_s`."""
    every = Every(period_s=period_s)
    match part:
        case Hold():
            return HoldRetention(every)
        case FileLaw():
            return made_from_file(part, every)
        case parts.Lru():
            return Lru(every, capacity_tokens=part.capacity_tokens, keep_compacted=part.keep_compacted)
        case parts.Ttl():
            return Ttl(every, ttl_s=part.ttl_s, demote_s=part.demote_s, capacity_tokens=part.capacity_tokens)
        case parts.ReuseClassifier():
            return ReuseClassifier(
                every,
                rebuild_price_per_s=part.rebuild_price_per_s,
                prior_contexts=part.prior_contexts,
                capacity_tokens=part.capacity_tokens,
            )
    assert_never(part)
