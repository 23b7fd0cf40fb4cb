"""Property tests for your own laws: random scenarios and readings, invariants to assert, a machine to subclass.

    worlds()              random scenarios, small enough to run in a test
    readings(slot)        one reading of a slot, missing and extreme values among them
    sequences(slot)       several in order, with stale repeats
    assert_invariants(r)  what holds of every run, whatever the law
    LawMachine            a hypothesis state machine that drives one law through changing loads

Drawn by hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from orchestrator.control import EMPTY, Law
from orchestrator.messages import Commands, Slot
from scenarios.build.laws.file import with_policy_file
from scenarios.conformance.kit import unsound
from scenarios.conformance.readings import readings, sequences, steady
from scenarios.conformance.steady_simulations import with_applied
from scenarios.run.execute import run
from scenarios.run.result import Run
from scenarios.schema.scenario import Scenario

__all__ = ["LawMachine", "Run", "assert_invariants", "readings", "run", "sequences", "worlds"]


@st.composite
def worlds(draw: Any, horizon_s: float = 60.0, law: str | None = None) -> Scenario:
    """Draw a scenario with a tandem plant of up to 64 slots, loaded from a tenth to twice its capacity.

    Parameters
    ----------
    horizon_s : float
        Simulated seconds; 60 cost some tens of milliseconds.
    law : str, optional
        The law that runs in it, `path/to/law.py:Class(name=value, ...)`; None: the door stays open.
    """
    slots = draw(st.integers(4, 64))
    mean_s = draw(st.sampled_from([0.5, 2.0, 5.0]))
    load = draw(st.sampled_from([0.1, 0.5, 0.9, 1.0, 2.0]))
    shape = draw(st.sampled_from(["exponential", "fixed", "erlang"]))
    world = Scenario.model_validate(
        {
            "title": "a random scenario",
            "question": "do the invariants hold?",
            "seed": draw(st.integers(0, 10**6)),
            "horizon_s": horizon_s,
            "warmup_s": 0.2 * horizon_s,
            "workload": {"kind": "poisson", "rate_per_s": load * slots / mean_s},
            "plant": {
                "kind": "tandem",
                "slots": slots,
                "dead_time_s": draw(st.sampled_from([0.0, 0.5, 5.0])),
                "residence": {"shape": shape, "mean_s": mean_s, **({"stages": 4} if shape == "erlang" else {})},
            },
            "telemetry": {
                "period_s": draw(st.sampled_from([0.0, 0.5])),
                "noise_ratio": draw(st.sampled_from([0.0, 0.1])),
            },
            "candidates": [{"name": "hold"}],
        }
    )
    if law is None:
        return world
    both, name = with_policy_file(world, law)
    return both.model_copy(update={"candidates": (both.candidate(name),)})


def assert_invariants(finished: Run) -> None:
    """Assert what holds of every run: turns are conserved, times are in order, pools are never over-full.

    Raises
    ------
    AssertionError
        With the first turn, or the first bin, that breaks the rule.
    """
    counts, turns, signals = finished.summary["counts"], finished.turns, finished.signals
    ended = counts["retired"] + counts["rejected"] + counts["failed"]
    assert counts["arrived"] == ended + counts["in_flight"], f"turns are not conserved: {counts}"
    for before, after in (("arrived_s", "released_s"), ("released_s", "filled_s"), ("filled_s", "ended_s")):
        a, b = turns[before].to_numpy(dtype=float), turns[after].to_numpy(dtype=float)
        wrong = np.flatnonzero(b < a - 1e-9)
        assert len(wrong) == 0, f"turn {turns['turn_id'].iloc[wrong[0]]}: {after} comes before {before}"
    full = signals["decode_occupancy_ratio_max"].to_numpy(dtype=float)
    over = np.flatnonzero(full > 1.0 + 1e-9)
    assert len(over) == 0, f"the decode pool is over-full at {signals['t_s'].iloc[over[0]]:g} s: {full[over[0]]:g}"


class LawMachine(RuleBasedStateMachine):
    """Drive one law through loads that are idle, moderate, saturated or without fresh readings, in any order.

    Subclass it, set `slot`, and return your law from `make_law`; add rules and invariants of your own. `self.command`
    is the last command of the law. Run it with `TestMyLaw = MyMachine.TestCase`.
    """

    slot: Slot = "admission"
    make_law: Callable[[], Law]

    @initialize()
    def begin(self) -> None:
        """Make the law, at time 0."""
        self.law = self.make_law()
        self.k = 0
        self.command: Commands = EMPTY[self.slot]
        self._latest: Any = None

    @rule(load=st.sampled_from([0.0, 0.3, 0.9, 3.0]), ticks=st.integers(1, 20))
    def live(self, load: float, ticks: int) -> None:
        """Hold the load constant for some ticks."""
        for _ in range(ticks):
            y = steady(self.slot, self.k, 1.0, load)
            if self._latest is not None:  # counters never fall
                named = [name for name in y.__dataclass_fields__ if name.endswith("_total")]
                y = replace(y, **{name: max(getattr(y, name), getattr(self._latest, name)) for name in named})
            self._act(y)

    @rule(ticks=st.integers(1, 10))
    def go_silent(self, ticks: int) -> None:
        """Let the readings grow stale: the same sample again, later."""
        for _ in range(ticks):
            if self._latest is not None:
                self._act(replace(self._latest, now_s=float(self.k)))

    def _act(self, y: Any) -> None:
        self._latest = y
        self.command = self.law.act(with_applied(y, self.command))
        self.k += 1

    @invariant()
    def commands_are_sound(self) -> None:
        """Every command is one that the actuator can take."""
        complaint = unsound(self.slot, getattr(self, "command", EMPTY[self.slot]))
        assert not complaint, f"{complaint}: {self.command}"
