"""The tandem plant: its residence laws, the laws of queues on it and on its cousins, and the echo of a cohort."""

from __future__ import annotations

import asyncio
import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from orchestrator.errors import SteadyflowError
from orchestrator.messages import BatchCommand
from orchestrator.turn import EMPTY_CHAIN, ClassName, ConfigurationName, KvRef, TurnId, TurnView
from orchestrator.virtual_clock import VirtualClock, run_virtual
from plant.hidden_turns import HiddenTurn, HiddenTurns
from plant.theory.tandem import DECODE, FILL, Residence, Tandem
from scenarios.run.execute import run
from scenarios.schema.load import load, validate
from tests.scenarios.run.littles_law import little

LAWS = [
    (Residence(mean_s=5.0), 1.0),
    (Residence(mean_s=5.0, shape="erlang", stages=4), 0.5),
    (Residence(mean_s=5.0, shape="erlang", stages=100), 0.1),
    (Residence(mean_s=5.0, shape="lognormal", cv_ratio=0.3), 0.3),
    (Residence(mean_s=5.0, shape="lognormal", cv_ratio=1.5), 1.5),
    (Residence(mean_s=5.0, shape="fixed"), 0.0),
]


@pytest.mark.parametrize(("law", "cv"), LAWS, ids=lambda x: getattr(x, "shape", ""))
def test_a_residence_has_its_stated_mean_and_spread(law: Residence, cv: float) -> None:
    # The quantile function integrated over u, in z = ndtri(u) so that both tails are smooth.
    def moment(power: int) -> float:
        integral, _ = integrate.quad(
            lambda z: law.seconds(float(stats.norm.cdf(z))) ** power * stats.norm.pdf(z), -8.0, 8.0, limit=200
        )
        return float(integral)

    mean = moment(1)
    assert mean == pytest.approx(5.0, rel=2e-4)
    assert math.sqrt(max(0.0, moment(2) - mean**2)) / mean == pytest.approx(cv, rel=5e-3, abs=1e-5)


@given(st.sampled_from([law for law, _ in LAWS]), st.floats(1e-9, 1 - 1e-9), st.floats(1e-9, 1 - 1e-9))
def test_a_residence_is_a_rising_positive_function_of_its_draw(law: Residence, u: float, v: float) -> None:
    low, high = sorted((u, v))
    assert 0.0 < law.seconds(low) <= law.seconds(high) < math.inf


# ------------------------------------------------ the port
def plant_and_turn(clock: VirtualClock, draw: float = 0.5) -> tuple[Tandem, TurnView]:
    hidden = HiddenTurns({TurnId(0): HiddenTurn(7, (draw,))})
    plant = Tandem(clock, hidden, slots=2, dead_time_s=3.0, residence=Residence(mean_s=4.0, shape="fixed"))
    return plant, TurnView(TurnId(0), 0, ClassName("chat"), 0, 0, 0.0, 10, EMPTY_CHAIN)


ANY = KvRef(EMPTY_CHAIN, 0, None)


@pytest.mark.parametrize("at_s", [0.0, 1.0, 2.999])
def test_cancelled_work_is_withdrawn_at_that_instant(at_s: float) -> None:
    async def main(clock: VirtualClock) -> None:
        plant, turn = plant_and_turn(clock)
        fill = plant.fill(FILL, turn, ANY)
        await clock.sleep_until(at_s)
        assert plant.read().pools[ConfigurationName("fill")].busy_slots == 1
        assert plant.withdraw(fill)
        assert plant.read().pools[ConfigurationName("fill")].busy_slots == 0
        assert not plant.withdraw(fill)
        decode = plant.decode(DECODE, turn, await plant.stage(DECODE, ANY))
        assert plant.read().pools[ConfigurationName("decode")].busy_slots == 1
        plant.withdraw(decode)
        pool = plant.read().pools[ConfigurationName("decode")]
        assert (pool.busy_slots, pool.served_total) == (0, 0)
        with pytest.raises(asyncio.CancelledError):
            await decode
        await clock.sleep_until(100.0)

    run_virtual(main)


def test_work_that_is_done_can_not_be_cancelled() -> None:
    async def main(clock: VirtualClock) -> None:
        plant, turn = plant_and_turn(clock)
        decode = plant.decode(DECODE, turn, await plant.stage(DECODE, ANY))
        await clock.sleep_until(5.0)
        assert not plant.withdraw(decode)
        done = await decode
        assert (done.joined_s, done.output_tokens) == (0.0, 7)
        assert plant.read().pools[ConfigurationName("decode")].tokens_total == 7

    run_virtual(main)


def test_a_batch_cap_is_clipped_to_the_slots_and_there_is_nothing_to_reconfigure() -> None:
    async def main(clock: VirtualClock) -> None:
        plant, _ = plant_and_turn(clock)
        for wanted, got in ((9, 2), (1, 1), (0, 1)):
            applied = plant.apply(BatchCommand(batch_cap_turns=wanted))
            assert isinstance(applied.command, BatchCommand)
            assert (applied.command.batch_cap_turns, applied.clipped) == (got, got != wanted)
        with pytest.raises(SteadyflowError, match="no other configuration"):
            plant.reconfigure(DECODE, ConfigurationName("other"))
        assert [fact.kind for fact in plant.facts()] == ["joined", "joined"]
        assert list(plant.facts()) == []

    run_virtual(main)


# ------------------------------------------------ queues
def queue(slots: int, rate_per_s: float, residence: dict[str, Any], turns: int, seed: int, dead_s: float = 0.0) -> Any:
    """A Poisson stream into a pool of `slots`: the turns' table."""
    scenario = validate(
        {
            "title": "queue",
            "question": "-",
            "seed": seed,
            "horizon_s": 10.0 * turns / rate_per_s,
            "warmup_s": 0.0,
            "workload": {"kind": "poisson", "rate_per_s": rate_per_s, "turns": turns},
            "plant": {"kind": "tandem", "slots": slots, "dead_time_s": dead_s, "residence": residence},
            "record": {"signal_bin_s": 50.0},
            "candidates": [{"name": "hold", "admission": {"kind": "hold"}}],
        },
        "queue",
    )
    return run(scenario).turns.sort_values("turn_id")


@cache
def waits(slots: int, rate_per_s: float, shape: str, seed: int) -> pd.DataFrame:
    turns: pd.DataFrame = queue(slots, rate_per_s, {"shape": shape, "mean_s": 1.0}, 40_000, seed)
    return turns


def erlang_c_wait_s(slots: int, load: float) -> float:
    """Mean wait of M/M/N with unit service: C(N, load) / (N - load); C from the recursion of Erlang B."""
    blocked = 1.0
    for n in range(1, slots + 1):
        blocked = load * blocked / (n + load * blocked)
    delayed = blocked / (1.0 - load / slots * (1.0 - blocked))
    return delayed / (slots - load)


def interval(values: np.ndarray, batches: int = 20) -> tuple[float, float]:
    """Mean and half-width of its 99.9 % interval by batch means, the first tenth dropped."""
    kept = values[len(values) // 10 :]
    means = np.array([part.mean() for part in np.array_split(kept, batches)])
    return float(means.mean()), float(stats.t.ppf(0.9995, batches - 1) * means.std(ddof=1) / math.sqrt(batches))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slots", "rate_per_s", "shape", "want_s"),
    [
        (1, 0.5, "exponential", 0.5 / 0.5),  # M/M/1: rho / (mu - lambda)
        (8, 6.4, "exponential", erlang_c_wait_s(8, 6.4)),  # M/M/N
        (1, 0.5, "fixed", 0.5 / (2 * 0.5)),  # M/D/1, Pollaczek-Khinchine
    ],
    ids=["M/M/1", "M/M/8", "M/D/1"],
)
def test_the_mean_wait_for_a_slot_is_the_queueing_formula(
    slots: int, rate_per_s: float, shape: str, want_s: float
) -> None:
    turns = waits(slots, rate_per_s, shape, 5)
    mean, half = interval((turns["joined_s"] - turns["filled_s"]).to_numpy())
    assert abs(mean - want_s) < half, (mean, half, want_s)
    assert half < 0.5 * want_s, "the interval says something"


@pytest.mark.slow
def test_arrivals_are_poisson_and_residences_follow_their_law() -> None:
    turns = waits(8, 6.4, "exponential", 5)
    gaps = np.diff(turns["arrived_s"].to_numpy())
    stays = (turns["ended_s"] - turns["joined_s"]).to_numpy()
    assert stats.kstest(gaps, stats.expon(scale=1 / 6.4).cdf).pvalue > 1e-3
    assert stats.kstest(stays, stats.expon.cdf).pvalue > 1e-3
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < 4 / math.sqrt(len(gaps))
    assert abs(np.corrcoef(gaps, stays[1:])[0, 1]) < 4 / math.sqrt(len(gaps)), "an arrival tells nothing of its stay"


@pytest.mark.slow
def test_littles_law_holds_on_every_stage_and_the_pool_is_used_by_its_load() -> None:
    turns = queue(10, 8.0, {"shape": "exponential", "mean_s": 1.0}, 20_000, 3, dead_s=2.0)
    end_s = float(turns["arrived_s"].max())
    for stage in ("filling", "ready", "decoding"):
        law = little(turns, stage, (100.0, end_s - 50.0))
        assert law.gap_ratio == pytest.approx(0.0, abs=0.01), (stage, law)
    busy = little(turns, "decoding", (100.0, end_s - 50.0))
    rate_per_s = len(turns) / end_s
    stay_s = float((turns["ended_s"] - turns["joined_s"]).mean())
    assert busy.number_turns / 10 == pytest.approx(rate_per_s * stay_s / 10, rel=0.01)


# ------------------------------------------------ the echo
def echo(residence: dict[str, Any], seed: int, horizon_s: float, warmup_s: float, slots: int = 512) -> Any:
    raw = load("echo").model_dump()
    raw["plant"] |= {"residence": residence, "slots": slots}
    raw["workload"]["waiting_turns"] = slots
    raw["candidates"] = [{"name": "credit_n", "admission": {"kind": "credit", "cap_turns": slots}}]
    raw |= {"seed": seed, "horizon_s": horizon_s, "warmup_s": warmup_s, "expect": {}}
    raw["record"] = {"signal_bin_s": 0.25}
    return run(validate(raw, "echo"), "credit_n")


@pytest.mark.slow
def test_a_cohort_of_equal_turns_comes_round_every_twenty_seconds_for_ever() -> None:
    done = echo({"shape": "fixed", "mean_s": 10.0}, 1, 620.0, 100.0)
    verdict = done.summary["verdict"]["decode_occupancy_ratio"]
    assert verdict["verdict"] == "echo"
    assert verdict["period_s"] == pytest.approx(20.0, rel=0.01)
    assert done.summary["flow"]["decode_utilization_ratio"] == pytest.approx(0.5, abs=0.01)
    busy = done.signals["decoding_turns_mean"].to_numpy()
    assert (busy[-80:].min(), busy[-80:].max()) == (0.0, 512.0), "after thirty laps as on the first"


def damping_from_record(done: Any, start_s: float, end_s: float, period_s: float) -> float:
    """Decay of the fundamental by complex demodulation, lap by lap."""
    t = done.signals["t_s"].to_numpy() + 0.125
    x = done.signals["decoding_turns_mean"].to_numpy()
    laps = []
    for k in range(round((end_s - start_s) / period_s)):
        lap = (t >= start_s + k * period_s) & (t < start_s + (k + 1) * period_s)
        laps.append(abs(np.mean(x[lap] * np.exp(-2j * np.pi * t[lap] / period_s))))
    slope = float(np.polyfit(np.arange(len(laps)), np.log(laps), 1)[0])
    return -slope / math.hypot(2 * math.pi, slope)


@pytest.mark.slow
def test_an_erlang_cohort_loses_its_shape_at_the_damping_of_theory() -> None:
    # cv of the lap: sigma_T / (L + T) = (10 / sqrt(100)) / 20.
    want = math.pi * 0.05**2
    measured = [
        damping_from_record(echo({"shape": "erlang", "mean_s": 10.0, "stages": 100}, seed, 320.0, 100.0), 20, 320, 20.0)
        for seed in range(8)
    ]
    assert np.mean(measured) == pytest.approx(want, rel=0.06), measured


@pytest.mark.slow
def test_a_cohort_with_spread_is_steady_after_ten_laps() -> None:
    done = echo({"shape": "lognormal", "mean_s": 10.0, "cv_ratio": 0.3}, 2, 700.0, 200.0)
    assert done.summary["verdict"]["decode_occupancy_ratio"]["verdict"] == "steady"
