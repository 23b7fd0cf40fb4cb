from __future__ import annotations

from typing import Any

from scenarios.report.answer import answer, standing


def summary(
    name: str, headline: Any, *, good: float | None = 1.0, rate: float = 10.0, gpu_hours: float = 1.0, cost: float = 0.0
) -> dict[str, Any]:
    return {
        "candidate": name,
        "headline": headline,
        "goodput": {"ratio": good, "turns_per_s": None if good is None else rate * good},
        "flow": {"retirement_per_s": rate, "decode_utilization_ratio": 0.5},
        "gpu_hours": gpu_hours,
        "window_s": [100.0, 3600.0],
        "latency": {"ttft_s": {"p99": 0.1}},
        "verdict": {"decode_occupancy_ratio": {"cost": {"utilization_lost_ratio": cost}}},
    }


CYCLE = "limit cycle, period 33.4 s, cost 21 %, starved"


def test_an_oscillator_is_never_recommended_however_full_its_pool_is() -> None:
    swings = summary("swings", "limit cycle, period 135 s, cost 0 %, fed", rate=20.0)
    message = answer([swings, summary("calm", "steady, fed")])
    assert message.startswith("1 of 2 candidates is steady and fed. Best is calm: 36,000 good turns per GPU-hour")
    assert "swings" not in message


def test_more_good_turns_per_gpu_hour_come_first_and_goodput_beats_mere_use() -> None:
    text = answer([summary("late", "steady, fed", good=0.872), summary("good", "steady, fed", good=0.951)])
    assert text.startswith("All 2 candidates are steady and fed. Best is good: 34,236 good turns per GPU-hour, 95.1 %")
    assert "next is late" in text
    cheap = answer([summary("dear", "steady, fed", gpu_hours=2.0), summary("cheap", "steady, fed")])
    assert "Best is cheap" in cheap


def test_cost_decides_between_equals_and_equals_are_all_named() -> None:
    message = answer([summary("idle", "steady, fed", cost=0.04), summary("busy", "steady, fed")])
    assert "Best is busy" in message
    assert "leaves 4 % of slot time idle" in message
    twins = [summary("a", "steady, fed"), summary("b", "constant, fed"), summary("c", CYCLE)]
    assert "Best are a and b, which are equal" in answer(twins)


def test_where_nothing_is_steady_and_fed_nothing_is_recommended() -> None:
    message = answer([summary("a", CYCLE, cost=0.21), summary("b", "driven, period 60 s, fed")])
    assert message.startswith("No candidate is both steady and fed, so none is recommended; 1 of 2 starve")
    assert "b comes nearest (driven, period 60 s, fed)" in message


def test_without_an_objective_retired_turns_are_counted_and_named_as_such() -> None:
    message = answer([summary("a", "steady, fed", good=None), summary("b", "steady, fed", good=None, rate=9.0)])
    assert "36,000 retired turns per GPU-hour" in message
    assert "objectives" not in message


def test_a_candidate_that_swings_on_one_seed_is_not_steady() -> None:
    mixed = {"mode": "steady, fed", "counts": {"steady, fed": 2, CYCLE: 1}}
    assert not standing(summary("a", mixed)).recommendable
    calm = {"mode": "steady, fed", "counts": {"steady, fed": 2, "constant, fed": 1}}
    assert standing(summary("a", calm)).recommendable
