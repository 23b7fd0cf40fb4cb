"""The decision on one signal: its words in a fixed order, each given only when every test of it agrees."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from scenarios.catalogue.verdict import NO_COST, Cost, SignalVerdict, Word
from scenarios.verdict import acf as correlation
from scenarios.verdict import moves, outside, shape, tones
from scenarios.verdict.bounded import is_unbounded
from scenarios.verdict.cycle import FEW_SURROGATES, SHORTEST, SURROGATES, Candidate, best_candidate, red_noise_p
from scenarios.verdict.thresholds import THRESHOLDS, Thresholds
from scenarios.verdict.types import Floats, Series

# Below this share of its scale a change is rounding.
FLAT = 1e-6
# A cycle is not claimed from fewer turns than this in the window, nor from fewer a period.
LEAST_TURNS, TURNS_A_PERIOD = 30.0, 3.0


def judge_signal(
    series: Series,
    *,
    inputs: Mapping[str, Floats] | None = None,
    transit_s: float | None = None,
    admissions: Floats | None = None,
    retirements: Floats | None = None,
    cost: Cost | None = None,
    limits: Thresholds = THRESHOLDS,
) -> SignalVerdict:
    """Judge one signal.

    Parameters
    ----------
    series : Series
        The signal, warm-up already cut away.
    inputs : mapping of str to ndarray, optional
        Series from outside the loop in the same bins (arrival rates that do not depend on the loop, a load column).
    transit_s : float, optional
        Mean time of one trip round the loop, seconds; with `admissions` and `retirements` it lets an echo be named.
    admissions, retirements : ndarray, optional
        Counts or rates in the same bins.
    cost : Cost, optional
        What the swing costs, carried through.
    limits : Thresholds
        Where the words part.

    Returns
    -------
    SignalVerdict
    """
    plain = _without_a_cycle(series, limits)
    if plain is not None:
        return _without_cycle(series, plain[0], plain[1], cost=cost, amplitude=plain[2])
    candidate, p_value = _search(series, limits)
    if candidate is None or not _stands(candidate, p_value, series, limits):
        chatter = _chatter(series, limits)
        if chatter is not None:
            return _without_cycle(series, "undecided", _chatter_words(chatter), cost=cost, amplitude=chatter)
        return _no_cycle(series, candidate, p_value, inputs or {}, cost, limits)
    ring = outside.Ring(transit_s=transit_s, admissions=admissions, retirements=retirements)
    word, reason = _kind(series, candidate, inputs or {}, ring, limits)
    return _with_cycle(series, candidate, p_value, word, reason, cost, limits)


def _without_a_cycle(series: Series, limits: Thresholds) -> tuple[Word, str, float] | None:
    low = series.mean if series.minimum is None else series.minimum
    high = series.mean if series.maximum is None else series.maximum
    if len(series.mean) == 0:
        return "undecided", "nothing was recorded after the warm-up", 0.0
    span = float(high.max() - low.min())
    if span <= FLAT * series.scale:
        return "constant", f"never leaves {series.mean[0]:.6g}", 0.0
    if len(series.mean) < SHORTEST:
        text = f"{len(series.mean)} samples are too few to tell; {SHORTEST} are the least"
        return "undecided", text, span / 2 / series.scale
    if series.stock and is_unbounded(series.mean, series.scale, limits):
        return "unbounded", "grows through the whole window and does not turn back", span / 2 / series.scale
    return None


def _search(series: Series, limits: Thresholds) -> tuple[Candidate | None, float | None]:
    candidate = best_candidate(series.mean, high_pass=False)
    p_value = _p(candidate, series, limits)
    if candidate is not None and _stands(candidate, p_value, series, limits):
        return candidate, p_value
    # A cycle may ride on something slower: look again with the slow part gone, if it was most of the movement.
    rest = correlation.detrend(series.mean, high_pass=True)
    if rest.var() > 0.75 * correlation.without_line(series.mean).var():
        return candidate, p_value
    again = best_candidate(series.mean, high_pass=True)
    p_again = _p(again, series, limits)
    if again is not None and _stands(again, p_again, series, limits):
        return again, p_again
    return candidate, p_value


def _p(candidate: Candidate | None, series: Series, limits: Thresholds) -> float | None:
    if candidate is None:
        return None
    return red_noise_p(candidate, SURROGATES if _large(candidate, series, limits) else FEW_SURROGATES)


def _large(candidate: Candidate, series: Series, limits: Thresholds) -> bool:
    if candidate.height <= limits.acf_peak:
        return False
    # Slow swings are judged by their strongest part, so that a ringing that has died away still counts.
    return shape.size(candidate.x, candidate.lag, strongest=True) / series.scale > limits.amplitude_ratio


def _stands(candidate: Candidate, p_value: float | None, series: Series, limits: Thresholds) -> bool:
    if p_value is None or p_value >= limits.p_value or not _large(candidate, series, limits):
        return False
    # Two great bursts make a peak by themselves; a cycle keeps its peak when values are replaced by their ranks, and
    # a train of short pulses, whose ranks are mostly those of the noise between them, when its largest are left out.
    ranks = correlation.ranks(correlation.rebin(series.mean, candidate.factor))
    acf = correlation.autocorrelation(correlation.detrend(ranks, candidate.high_pass))
    low, high = int(0.9 * candidate.lag), int(np.ceil(1.1 * candidate.lag)) + 1
    if float(acf[low:high].max(initial=0.0)) > limits.acf_peak:
        return True
    enough = len(candidate.x) / candidate.lag >= limits.min_periods
    return enough and shape.repeats_without_the_largest(candidate.x, candidate.lag) > limits.acf_peak


def _kind(
    series: Series, candidate: Candidate, inputs: Mapping[str, Floats], ring: outside.Ring, limits: Thresholds
) -> tuple[Word, str]:
    periods = len(candidate.x) / candidate.lag
    period_s = candidate.lag * candidate.factor * series.step_s
    if periods < limits.min_periods:
        return (
            "undecided",
            f"swings with a period near {period_s:.4g} s, but the window holds only {periods:.1f} periods",
        )
    if series.turns is not None and series.turns < max(LEAST_TURNS, TURNS_A_PERIOD * periods):
        return "undecided", f"{series.turns:.0f} turns moved in the window: too few to show {periods:.0f} periods"
    around = shape.envelope(candidate.x, candidate.lag)
    decays = -around.log_change > np.log(limits.decay_factor) and around.clean > 0.5
    if not decays and shape.size(candidate.x, candidate.lag) / series.scale <= limits.amplitude_ratio:
        return "steady", f"a ripple of {period_s:.4g} s, smaller than {limits.amplitude_ratio:.0%} of the scale"
    for name, values in inputs.items():
        if (squared_coherence := outside.coherence(candidate, values, limits)) is not None:
            return "driven", f"follows {name}, which has the same period (squared coherence {squared_coherence:.2f})"
    off = outside.echo_error(period_s, candidate, ring, limits)
    by_chance = not decays and around.cv >= limits.envelope_cv and _is_counting_noise(series, candidate, limits)
    # The period of a noisy bunch wanders further than that of a real one.
    if by_chance and off < 3 * limits.echo_period_ratio:
        return "steady", f"bunches come round every {period_s:.4g} s, no larger than counting noise"
    if off < limits.echo_period_ratio:
        transit_s = ring.transit_s
        return "echo", f"bunches return after the loop's transit time of {transit_s:.4g} s: admissions copy retirements"
    if decays:
        return "ringing", f"a cycle of {period_s:.4g} s that dies away"
    if around.log_change > np.log(limits.decay_factor) and around.clean > 0.5 and around.still_grows:
        factor = float(np.exp(around.log_change))
        return "growing", f"a cycle of {period_s:.4g} s that grows: {factor:.2g} times as large at the end as at first"
    two = tones.two_tones(candidate.x, candidate.lag)
    if two is not None:
        a_s, b_s = (length * candidate.factor * series.step_s for length in two)
        return "limit_cycle", f"two cycles at once, of {a_s:.4g} s and {b_s:.4g} s"
    if around.cv < limits.envelope_cv or candidate.keeps_phase:
        return "limit_cycle", f"an even cycle of {period_s:.4g} s that keeps its size (envelope cv {around.cv:.2f})"
    return "quasi_cycle", f"a cycle of {period_s:.4g} s kept up by noise (envelope cv {around.cv:.2f})"


def _is_counting_noise(series: Series, candidate: Candidate, limits: Thresholds) -> bool:
    if series.one_turn is None:
        return False
    x = correlation.rebin(series.mean, candidate.factor)
    poisson = abs(float(x.mean())) * series.one_turn / (candidate.factor if series.flow else 1)
    return float(candidate.x.var()) < limits.over_poisson * poisson


def _chatter(series: Series, limits: Thresholds) -> float | None:
    if series.minimum is None or series.maximum is None:
        return None
    inside = float(np.median(series.maximum - series.minimum))
    between = float(np.sqrt(np.mean(np.diff(series.mean) ** 2)))
    half = inside / 2 / series.scale
    return half if half > limits.amplitude_ratio and inside > limits.chatter * between else None


def _chatter_words(half: float) -> str:
    return (
        f"swings by {half:.0%} of the scale inside single bins, faster than the record can resolve: record finer bins"
    )


def _no_cycle(
    series: Series,
    candidate: Candidate | None,
    p_value: float | None,
    inputs: Mapping[str, Floats],
    cost: Cost | None,
    limits: Thresholds,
) -> SignalVerdict:
    hunts = moves.hunting(series.mean, series.scale) if series.actuator else None
    if hunts is not None and not any(outside.follows(series.mean, values) for values in inputs.values()):
        span_s = len(series.mean) * series.step_s
        text = f"{hunts.reversals} irregular reversals in {span_s:.4g} s, of {hunts.size_ratio:.0%} of the scale"
        return _without_cycle(series, "hunting", text, cost=cost, amplitude=hunts.size_ratio / 2)
    reason = "no peak in the autocorrelation stands out of red noise with an amplitude that matters"
    if candidate is None:
        return _without_cycle(series, "steady", reason, cost=cost, amplitude=float(np.std(series.mean)) / series.scale)
    return _with_cycle(series, candidate, p_value, "steady", reason, cost, limits)


def _without_cycle(series: Series, word: Word, reason: str, *, cost: Cost | None, amplitude: float) -> SignalVerdict:
    return SignalVerdict(
        signal=series.name, verdict=word, reason=reason, amplitude_ratio=amplitude, cost=(cost or NO_COST).copy()
    )


def _with_cycle(
    series: Series,
    candidate: Candidate,
    p_value: float | None,
    word: Word,
    reason: str,
    cost: Cost | None,
    limits: Thresholds,
) -> SignalVerdict:
    around = shape.envelope(candidate.x, candidate.lag)
    decrement = candidate.decrement(even=around.cv < limits.envelope_cv)
    falls = word in ("echo", "ringing", "limit_cycle") and around.decay_clean > 0.5
    if falls or (abs(around.log_change) > np.log(2.0) and around.clean > 0.5 and word != "steady"):
        decrement = -around.decay * candidate.lag
    step_s = candidate.factor * series.step_s
    # A ripple that is real but too small to matter keeps its period; a peak that noise explains has none.
    periods = len(candidate.x) / candidate.lag
    real = p_value is not None and p_value < limits.p_value and candidate.height > limits.acf_peak
    repeats = word != "steady" or (real and periods >= limits.min_periods)
    several: tuple[float, ...] = ()
    if word in ("limit_cycle", "quasi_cycle", "growing", "driven"):
        several = tones.periods(series, candidate, limits)
    frequency, power = shape.spectrum(series.mean, series.step_s)
    return SignalVerdict(
        signal=series.name,
        verdict=word,
        reason=reason,
        period_s=(several[0] if several else candidate.lag * step_s) if repeats else None,
        other_periods_s=several[1:],
        amplitude_ratio=shape.swing(candidate.x, candidate.lag) / series.scale,
        damping_ratio=shape.damping_of(decrement) if repeats else None,
        p_value=p_value,
        regularity=correlation.crossing_regularity(candidate.acf),
        envelope_cv=around.cv,
        periods=periods,
        cost=(cost or NO_COST).copy(),
        acf_lags_s=np.arange(len(candidate.acf), dtype=np.float64) * step_s,
        acf=candidate.acf,
        spectrum_hz=frequency,
        spectrum=power,
    )
