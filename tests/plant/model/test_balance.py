"""Expert ranks that differ: skew slows the slowest, replicas mend it, and experts need not divide evenly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plant.model.balance import popularity, rank_loads, slots_per_rank
from plant.model.memory import memory
from plant.model.placement import Placement, PlacementError, check_placement, parse_placement
from plant.model.regimes import decode, run_pass, setting_of
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS

V3, GB200, ENGINE = MODELS["deepseek-v3"], HARDWARE["gb200-nvl72"], ENGINES["rack-2025"]


def tpot_ms(batch: float, dp: int = 64, skew: float = 0.0, redundant: int = 0, balanced: bool = False) -> float:
    place = Placement(dp=dp, skew=skew, redundant_experts=redundant, balanced=balanced)
    return float(decode(setting_of(V3, GB200, ENGINE, place), batch, 4096.0).tpot_s) * 1e3


@pytest.mark.parametrize("batch", [16.0, 64.0, 256.0])
def test_skew_slows_the_step_of_the_slowest_rank(batch: float) -> None:
    steps = [tpot_ms(batch, skew=skew) for skew in (0.0, 0.5, 1.0, 1.5)]
    assert steps == sorted(steps)
    assert steps[-1] > 1.2 * steps[0]


@pytest.mark.parametrize("skew", [0.5, 1.0, 1.5])
def test_placing_by_load_helps_and_replicas_mend_nearly_all(skew: float) -> None:
    even, none = tpot_ms(64.0), tpot_ms(64.0, skew=skew)
    balanced, replicated = tpot_ms(64.0, skew=skew, balanced=True), tpot_ms(64.0, skew=skew, redundant=64)
    assert replicated < balanced <= none
    assert replicated == pytest.approx(even, rel=0.05)


def test_two_hundred_and_fifty_six_experts_and_thirty_two_replicas_stand_on_seventy_two_ranks() -> None:
    place = parse_placement("dp72ep72r32")
    check_placement(V3, GB200, place)
    assert place.label() == "pp1tp1dp72ep72r32"
    held = memory(setting_of(V3, GB200, ENGINE, place), 1.0, 4096.0).experts
    share = V3.weight_bytes()["experts"] / 256
    assert held == pytest.approx(4 * share)  # (256 + 32) / 72 slots
    bare = memory(setting_of(V3, GB200, ENGINE, Placement(dp=72)), 1.0, 4096.0).experts
    assert bare == pytest.approx(math.ceil(256 / 72) * share)


def test_uneven_experts_load_the_fullest_rank_more() -> None:
    assert rank_loads(256, 8, 72, 0, 0.0, False).load_ratio == pytest.approx(4 * 72 / 256)
    # 32 replicas of equal experts leave eight ranks with four whole ones; of unequal ones they take the load away.
    assert rank_loads(256, 8, 72, 32, 0.0, False).load_ratio == pytest.approx(4 * 72 / 256)
    assert rank_loads(256, 8, 72, 32, 1.0, False).load_ratio < 0.5 * rank_loads(256, 8, 72, 0, 1.0, False).load_ratio


def test_more_ranks_than_experts_are_refused() -> None:
    with pytest.raises(PlacementError, match="ep=512 is more than 256 experts and 32 replicas"):
        check_placement(V3, GB200, Placement(dp=512, redundant_experts=32))


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 40), st.integers(0, 30), st.floats(0.0, 2.0), st.booleans())
def test_the_slowest_rank_is_never_below_the_mean(ranks: int, redundant: int, skew: float, balanced: bool) -> None:
    loads = rank_loads(64, 6, ranks, redundant, skew, balanced)
    assert loads.load_ratio >= 1.0 - 1e-9
    assert loads.copy_ratio >= 1.0
    assert list(loads.touched) == sorted(loads.touched)
    assert loads.touched[-1] <= slots_per_rank(64, redundant, ranks) + 1e-9


def test_selection_probabilities_sum_to_the_experts_of_a_token() -> None:
    assert popularity(256, 8, 1.2).sum() == pytest.approx(8.0)
    assert np.all(np.diff(popularity(256, 8, 1.2)) <= 0.0)


def test_copies_to_the_hottest_rank_lengthen_the_dispatch() -> None:
    sent = [
        float(run_pass(setting_of(V3, GB200, ENGINE, Placement(dp=64, skew=s)), 64.0, 1.0, 4096.0, fill=False)
              .link_bytes["scale_up"]) for s in (0.0, 1.0)
    ]  # fmt: skip
    assert sent[1] > 1.5 * sent[0]
