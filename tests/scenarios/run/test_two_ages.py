"""Readings have two ages: a scrape holds the plant's for a while, the orchestrator's own counts are fresh.

Measured on a real engine of eight slots behind a gateway: a gate on busy slots scraped every s seconds swings with the
period s ceil(alpha) and leaves the engine empty for 1 - alpha / ceil(alpha) of the time (alpha: what admission lets in,
over what a full pool serves); a gate that counts its own work in flight is steady under the same scrape.
"""

from __future__ import annotations

import pytest

from scenarios.run.execute import run
from scenarios.run.result import Run
from scenarios.schema.load import validate

ALPHA, SLOTS, MEAN_S, SCRAPE_S = 1.5, 8, 0.5, 4.0
GATE = {"kind": "retirement_gate", "open_at_ratio": 0.95, "close_at_ratio": 1.0}
IN_FLIGHT = {"kind": "inflight_credit_gate", "open_at_turns": 12, "close_at_turns": 14}


def outcome(law: dict[str, object], ledger: str) -> Run:
    raw = {
        "title": "a scraped pool",
        "question": "does the gate swing?",
        "seed": 3,
        "horizon_s": 400.0,
        "warmup_s": 80.0,
        "workload": {"kind": "saturated", "waiting_turns": 64},
        "plant": {"kind": "tandem", "slots": SLOTS, "dead_time_s": 0.001, "residence": {"mean_s": MEAN_S}},
        "admission": {"max_release_per_s": ALPHA * SLOTS / MEAN_S},
        "telemetry": {"period_s": SCRAPE_S, "ledger": ledger},
        "control": {"admission_period_s": 0.1},
        "candidates": [{"name": "law", "admission": law}],
    }
    return run(validate(raw, "test.toml"))


def test_a_gate_on_a_held_sample_swings_by_its_own_rule_whatever_the_age_of_the_ledger() -> None:
    done = outcome(GATE, "fresh")
    verdict = done.data.verdicts["in_flight_turns"]
    assert verdict.verdict == "limit_cycle"
    assert verdict.period_s == pytest.approx(2 * SCRAPE_S, rel=0.02)
    lost = 1.0 - float(done.signals["decode_occupancy_ratio_mean"][lambda x: x.index > len(x) // 5].mean())
    assert lost == pytest.approx(1 - ALPHA / 2, abs=0.05)


def test_a_gate_on_its_own_count_is_steady_where_that_is_fresh_and_swings_where_it_is_scraped_too() -> None:
    assert not outcome(IN_FLIGHT, "fresh").data.verdicts["in_flight_turns"].verdict.endswith("cycle")
    assert outcome(IN_FLIGHT, "aged").data.verdicts["in_flight_turns"].verdict == "limit_cycle"
