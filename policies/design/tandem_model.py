"""A tandem of dead time and slots as loops: what the front door's signals do when the release rate is stirred.

For a small change u of the release rate, with the pool's slots free (`starved`) or all busy (`full`):

    signal                starved                               full
    busy x                e^{-sL} (1 - F*(sT)) / s              0
    at decode y           x                                     e^{-sL} / s
    in flight W           (1 - e^{-sL} F*(sT)) / s              1 / s
    retirements q         e^{-sL} F*(sT)                        0

with F* the transform of the residence over its mean T (`residence.Shape`); exponential: 1 / (1 + sT).

A law's linearisation says which combination of them it feeds back, and so does its loop gain follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from policies.design.loops import PADE_ORDER, Complexes, Rational, Response
from policies.design.residence import EXPONENTIAL, Shape

Regime = Literal["starved", "full"]
Signal = Literal["busy", "at_decode", "in_flight", "retirements"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TandemModel:
    """Dead time L of the pipeline, N slots, mean residence T and its shape, and how late the law sees and acts.

    `observation_s` = age of the readings + half of the sampling period; it delays every signal alike.
    """

    slots: float
    residence_s: float
    dead_time_s: float
    observation_s: float = 0.0
    shape: Shape = EXPONENTIAL

    @property
    def loop_delay_s(self) -> float:
        """Return what feedback on busy slots has to live with: pipeline and observation together."""
        return self.dead_time_s + self.observation_s

    @property
    def service_per_s(self) -> float:
        """Return N/T, what a full pool retires."""
        return self.slots / self.residence_s

    def respond(self, signal: Signal, s: Complexes, regime: Regime, delay: Complexes) -> Complexes:
        """Return the transfer from the release rate to the signal as the law sees it, at complex frequencies s.

        `delay` is the pipeline's own, e^{-sL}.
        """
        starved = regime == "starved"
        ended = self.shape.transform(s * self.residence_s) if starved else np.zeros_like(s)
        value: Complexes
        if signal == "in_flight":
            value = (1 - delay * ended) / s
        elif signal == "retirements":
            value = delay * ended
        elif signal == "busy" and not starved:
            value = np.zeros_like(s)
        else:
            value = delay * (1 - ended) / s
        return value * np.exp(-s * self.observation_s)

    def system(self, signal: Signal, regime: Regime, order: int = PADE_ORDER) -> Any:  # Any: python-control's, untyped
        """Return the same transfer as a state space of python-control, each dead time as Pade of this order.

        A fixed residence is a dead time too; a lognormal or measured one is replaced by one of the same mean and cv.
        """
        import control

        s = control.tf("s")
        numerator, denominator = control.pade(self.dead_time_s, order) if self.dead_time_s > 0 else ([1.0], [1.0])
        delay = control.tf(numerator, denominator)
        ended_up, ended_down = self.shape.polynomials(self.residence_s, order)
        # What is busy, (1 - F*)/s, without the pole at 0 that cancels.
        busy = delay * control.tf(np.polysub(ended_down, ended_up)[:-1], ended_down)
        starved = regime == "starved"
        if signal == "busy":
            system = busy if starved else control.tf([0.0], [1.0])
        elif signal == "at_decode":
            system = busy if starved else delay / s
        elif signal == "in_flight" and starved:
            # What is in the pipeline, (1 - e^{-sL})/s, without the pole at 0 that cancels, and what is busy.
            emptied = np.polysub(denominator, numerator)[:-1]
            system = busy + control.tf(emptied, denominator) if len(emptied) else busy
        elif signal == "in_flight":
            system = 1 / s
        else:
            system = delay * control.tf(ended_up, ended_down) if starved else control.tf([0.0], [1.0])
        seen = Rational([1.0], [1.0], self.observation_s).system(order)
        return control.tf2ss(system) * control.tf2ss(seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A law about its set point: u = -sum of C_i(s) times signal i, in turns/s.

    `feedback` maps a signal to C_i; a law whose rate is a filtered signal may give a negative one. `note` says in a
    few words what the loop is.
    """

    feedback: Mapping[Signal, Rational]
    note: str = ""

    def loop(self, model: TandemModel, regime: Regime = "starved") -> Response:
        """Return the loop gain with this model; 1 + G = 0 are the closed loop's modes."""
        return lambda s: self._total(model, s, regime, np.exp(-s * model.dead_time_s))

    def around(self, model: TandemModel, regime: Regime = "starved") -> Response:
        """Return the part of the loop gain that does not pass the pipeline: work is counted from its release on."""
        return lambda s: self._total(model, s, regime, np.zeros_like(s))

    def _total(self, model: TandemModel, s: Complexes, regime: Regime, delay: Complexes) -> Complexes:
        total = np.zeros_like(s)
        for signal, gain in self.feedback.items():
            total = total + gain(s) * model.respond(signal, s, regime, delay)
        return total

    def system(self, model: TandemModel, regime: Regime = "starved", order: int = PADE_ORDER) -> Any:  # Any: as above
        """Return the loop gain as a state space of python-control, each dead time as Pade of this order."""
        import control

        parts = [
            control.tf2ss(gain.system()) * model.system(signal, regime, order) for signal, gain in self.feedback.items()
        ]
        return sum(parts[1:], parts[0])


def constant(value: float) -> Rational:
    """Return s -> value."""
    return Rational([value], [1.0])


def proportional(gain_per_s: float, on: Literal["busy", "at_decode"] = "busy") -> Linear:
    """Return u = u0 + k (r - y): the pipeline unseen, so that the whole dead time is in the loop."""
    return Linear(feedback={on: constant(gain_per_s)}, note="proportional through the dead time")


def proportional_on_work(gain_per_s: float) -> Linear:
    """Return u = u0 + k (W* - W): everything released and not retired is counted, so the dead time leaves the loop."""
    return Linear(feedback={"in_flight": constant(gain_per_s)}, note="paced work in flight")


def predictive_on_retirements(gain_per_s: float, smoothing_s: float, assumed_dead_time_s: float) -> Linear:
    """Return paced work whose rate r is the EWMA of the retirements themselves: u = (1 + k L) r - k W + ...

    A starved pool retires little and the estimate believes it: positive feedback, and a root near zero.
    """
    up = 1 + gain_per_s * assumed_dead_time_s
    return Linear(
        feedback={
            "in_flight": constant(gain_per_s),
            "retirements": Rational([-up], [smoothing_s, 1.0]),
        },
        note="the rate is learnt from the pool's own retirements",
    )


def pi_at_decode(kp_per_s: float, ti_s: float, smoothing_s: float) -> Linear:
    """Return u = -kp (1 + 1/(s ti)) / (1 + s tau) of the turns at decode: the whole dead time is in the loop."""

    controller = Rational([kp_per_s * ti_s, kp_per_s], [ti_s * smoothing_s, ti_s, 0.0])
    return Linear(feedback={"at_decode": controller}, note="proportional and integral through the dead time")
