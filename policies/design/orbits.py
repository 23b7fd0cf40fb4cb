"""Exact periodic orbits of a relay gate before a pool with dead time.

The gate releases at `a` turns a second while open and at 0 while closed; what it releases reaches decode a dead time L
later; the pool has N slots and mean residence T (exponential). With x busy slots:

    dx/dt = u(t - L) - x / T         x in turns, u in turns/s, L and T in s

What the gate sees may be old: the observation's age and half of the sampling period add to L (a zero-order hold's mean
delay; within 1 % of the cycle's period at a sampling period of L/2, within 3.5 % at L).

References
----------
Tsypkin, Relay Control Systems (1984), ch. 3, for the method of piecing exponentials together.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

import numpy as np
from scipy.optimize import brentq


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOrbit:
    """One period of a relay cycle.

    `trough_turns` and `peak_turns` bound the busy slots, `ready_peak_turns` the hand-off buffer;
    `utilization_ratio` is the mean of busy slots over N (None where slots never run out).
    """

    period_s: float
    trough_turns: float
    peak_turns: float
    ready_peak_turns: float
    utilization_ratio: float | None

    @property
    def amplitude_turns(self) -> float:
        """Return half of the peak-to-peak swing of the busy slots."""
        return (self.peak_turns - self.trough_turns) / 2


def unsaturated_orbit(
    *, residence_s: float, dead_time_s: float, open_at_turns: float, close_at_turns: float, rate_per_s: float
) -> RelayOrbit | None:
    """Return the orbit of a gate that opens at `open_at_turns` and closes at `close_at_turns`, slots never running out.

    None where the open gate cannot lift the pool to the closing level: then there is no cycle.
    """
    t, dead, top = residence_s, dead_time_s, rate_per_s * residence_s
    if top <= close_at_turns or open_at_turns <= 0:
        return None
    peak = top - (top - close_at_turns) * exp(-dead / t)
    trough = open_at_turns * exp(-dead / t)
    period = 2 * dead + t * log((top - trough) / (top - close_at_turns)) + t * log(peak / open_at_turns)
    return RelayOrbit(
        period_s=period, trough_turns=trough, peak_turns=peak, ready_peak_turns=0.0, utilization_ratio=None
    )


def full_empty_orbit(
    *,
    slots: float,
    residence_s: float,
    dead_time_s: float,
    band_turns: float,
    rate_per_s: float,
    close_at_turns: float | None = None,
) -> RelayOrbit | None:
    """Return the orbit of a gate that opens `band_turns` below all slots and overfills them after it has closed.

    It closes when all slots are busy, or at `close_at_turns` below that. When it closes, the dead time holds more turns
    than there is room for; they overfill the hand-off buffer, burn away, and then the pool drains for another dead time
    before the first new turn arrives.

    None where the open gate releases no more than a full pool retires, or closes so early that the slots never run
    out: then there is no cycle of this kind.
    """
    n, t, dead = slots, residence_s, dead_time_s
    alpha = rate_per_s * t / n
    close_at = n if close_at_turns is None else close_at_turns
    if alpha <= 1 or not 0 <= band_turns < n or not n - band_turns <= close_at <= n:
        return None
    # From closing to the last free slot: what comes after it goes to the buffer.
    room_s = t * log((alpha - close_at / n) / (alpha - 1))
    if room_s > dead:
        return None
    open_at = n - band_turns
    trough = open_at * exp(-dead / t)
    fill_s = t * log((alpha - trough / n) / (alpha - 1))
    fall_s = t * log(n / open_at)
    period = dead + alpha * (dead - room_s) + fill_s + fall_s
    drain_s = dead + fall_s
    lost = n * (drain_s - t * (1 - exp(-drain_s / t)))
    lost += (n - alpha * n) * fill_s + (alpha * n - trough) * t * (1 - exp(-fill_s / t))
    return RelayOrbit(
        period_s=period,
        trough_turns=trough,
        peak_turns=n,
        ready_peak_turns=(rate_per_s - n / t) * (dead - room_s),
        utilization_ratio=1 - lost / (n * period),
    )


def loaded_full_empty_orbit(
    *,
    slots: float,
    residence_s: tuple[float, float],
    dead_time_s: float,
    open_at_turns: float,
    close_at_turns: float,
    rate_per_s: float,
) -> RelayOrbit | None:
    """Return the full-empty orbit of a pool whose residence grows with its load: T(x) = T_0 + (T_1 - T_0) x / N.

    Batches step more slowly the fuller they are. Draining, T(x) dx = -x dt has a closed form; filling is a quadrature.

    Parameters
    ----------
    slots, dead_time_s, open_at_turns, close_at_turns, rate_per_s
        As in `relay_orbit`.
    residence_s : (float, float)
        T_0 and T_1, mean residence in an empty and in a full pool.

    Returns
    -------
    RelayOrbit or None
        None where the open gate releases no more than a full pool retires, or does not overfill it.
    """
    n, dead, (empty, full) = slots, dead_time_s, residence_s
    close_at = min(close_at_turns, n)
    if rate_per_s * full <= n or not 0 < open_at_turns <= close_at:
        return None
    slope = (full - empty) / n

    def filling(start: float, end: float) -> tuple[float, float]:
        x = np.linspace(start, end, 2001)
        pace = 1 / (rate_per_s - x / (empty + slope * x))
        return float(np.trapezoid(pace, x)), float(np.trapezoid(x * pace, x))

    def draining(start: float, end: float) -> tuple[float, float]:
        span = empty * log(start / end) + slope * (start - end)
        return span, empty * (start - end) + slope * (start**2 - end**2) / 2

    room_s, _ = filling(close_at, n)
    if room_s > dead:
        return None
    trough = float(
        brentq(lambda x: draining(open_at_turns, x)[0] - dead, open_at_turns * exp(-dead / empty), open_at_turns)
    )
    buffer = (rate_per_s - n / full) * (dead - room_s)
    fill_s, filled = filling(trough, n)
    fall_s, fallen = draining(n, trough)
    burn_s = dead - room_s + buffer * full / n
    period = fill_s + burn_s + fall_s
    return RelayOrbit(
        period_s=period,
        trough_turns=trough,
        peak_turns=n,
        ready_peak_turns=buffer,
        utilization_ratio=(filled + n * burn_s + fallen) / (n * period),
    )


def relay_orbit(
    *,
    slots: float,
    residence_s: float,
    dead_time_s: float,
    open_at_turns: float,
    close_at_turns: float,
    rate_per_s: float,
) -> RelayOrbit | None:
    """Return the orbit of whichever regime the thresholds make: one that overfills the slots, or one that does not."""
    full = full_empty_orbit(
        slots=slots,
        residence_s=residence_s,
        dead_time_s=dead_time_s,
        band_turns=slots - open_at_turns,
        rate_per_s=rate_per_s,
        close_at_turns=min(close_at_turns, slots),
    )
    if full is not None or close_at_turns >= slots:
        return full
    orbit = unsaturated_orbit(
        residence_s=residence_s,
        dead_time_s=dead_time_s,
        open_at_turns=open_at_turns,
        close_at_turns=close_at_turns,
        rate_per_s=rate_per_s,
    )
    return orbit if orbit is not None and orbit.peak_turns <= slots else None


def wip_relay_orbit(
    *,
    slots: float,
    residence_s: float,
    dead_time_s: float,
    open_at_turns: float,
    close_at_turns: float,
    rate_per_s: float,
    observation_s: float = 0.0,
) -> RelayOrbit | None:
    """Return the orbit of a relay on all work in flight, with the pool kept full.

    The dead time of the pipeline is inside what is counted, so only the observation's own delay is left, and the
    count moves along straight lines: up at a - N/T, down at N/T. The pool stays full while the lowest count covers
    pipeline and slots.

    Returns
    -------
    RelayOrbit or None
        Its `trough_turns`, `peak_turns` are of the work in flight. None: the gate cannot outpace the pool.
    """
    down = slots / residence_s
    up = rate_per_s - down
    if up <= 0 or close_at_turns < open_at_turns:
        return None
    peak = close_at_turns + up * observation_s
    trough = open_at_turns - down * observation_s
    period = (peak - trough) * (1 / up + 1 / down)
    if period <= 0:
        return None
    full = trough >= slots * (1 + dead_time_s / residence_s)
    return RelayOrbit(
        period_s=period,
        trough_turns=trough,
        peak_turns=peak,
        ready_peak_turns=max(peak - slots * (1 + dead_time_s / residence_s), 0.0),
        utilization_ratio=1.0 if full else None,
    )
