"""From a batching law's table to the law."""

from __future__ import annotations

from typing import assert_never

from orchestrator.control import Law
from orchestrator.ports import Every
from policies.batching.aimd import Aimd
from policies.batching.hold import Hold as HoldBatching
from policies.batching.slew_limited import SlewLimited
from policies.batching.slo_cap import SloCap
from policies.batching.small_batch import SmallBatch
from scenarios.build.laws.file import made_from_file
from scenarios.schema.laws import FileLaw, Hold
from scenarios.schema.laws import batching as parts


def batching(part: parts.Batching, period_s: float) -> Law:
    """Return the batching law that a table describes, acting every `period_s`."""
    every = Every(period_s=period_s)
    match part:
        case Hold():
            return HoldBatching(every)
        case FileLaw():
            return made_from_file(part, every)
        case parts.SloCap():
            return _slo_cap(part, every)
        case parts.AimdBatch():
            return Aimd(
                every,
                least_turns=part.least_turns,
                most_turns=part.most_turns,
                add_turns=part.add_turns,
                cut_ratio=part.cut_ratio,
                kv_ceiling_ratio=part.kv_ceiling_ratio,
            )
        case parts.SlewLimited():
            return SlewLimited(
                every,
                target=_slo_cap(part, every),
                start_turns=part.start_turns,
                settle_s=part.settle_s,
                slew_ratio=part.slew_ratio,
                band_ratio=part.band_ratio,
            )
        case parts.SmallBatch():
            return SmallBatch(
                every,
                least_turns=part.least_turns,
                most_turns=part.most_turns,
                low_turns=part.low_turns,
                high_turns=part.high_turns,
                rise_s=part.rise_s,
                fall_s=part.fall_s,
                step_ratio=part.step_ratio,
            )
    assert_never(part)


def _slo_cap(part: parts.SloCap | parts.SlewLimited, every: Every) -> SloCap:
    return SloCap(
        every,
        base_s=part.base_s,
        least_turns=part.least_turns,
        most_turns=part.most_turns,
        margin_ratio=part.margin_ratio,
        tau_s=part.tau_s,
    )
