"""The numbers that divide one word from the next, in one place; calibrated on null series and on known cycles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Where the words part.

    A cycle must clear all of: autocorrelation peak `acf_peak`, surrogate probability `p_value`, fundamental amplitude
    over scale `amplitude_ratio`, and `min_periods` periods in the window. An envelope whose coefficient of variation
    is below `envelope_cv` is a limit cycle (narrow-band noise gives the Rayleigh value 0.52).
    """

    acf_peak: float = 0.30
    p_value: float = 0.01
    amplitude_ratio: float = 0.03
    envelope_cv: float = 0.35
    min_periods: float = 10.0
    # With fewer periods only a peak this high leaves the matter open; red noise alone often makes lower ones there.
    undecided_peak: float = 0.50
    # An envelope that changes by this factor over the window, along a clean exponential, decays (or grows).
    decay_factor: float = 2.5
    # A stock is unbounded when its trend's t, its final over median level, and its drift from high levels agree.
    trend_t: float = 4.0
    final_over_median: float = 1.2
    # Squared coherence with a recorded input that has a peak of its own there.
    coherence: float = 0.6
    # The loop's transit time and the period of an echo agree within this share; admissions copy retirements so well.
    echo_period_ratio: float = 0.06
    echo_copy: float = 0.8
    # A ring bunches by chance alone; it echoes only where its variance exceeds this multiple of a Poisson count's.
    over_poisson: float = 1.5
    # Swing inside the bins over change between bins: Brownian motion gives 2.
    chatter: float = 4.0


THRESHOLDS = Thresholds()
