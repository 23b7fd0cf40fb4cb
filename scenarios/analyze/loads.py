"""Predictions under arrivals below capacity: what binds first, the arrivals or the law.

A law has a limit of its own: what it releases in the mean while work always waits. Below it a backlog drains and the
pool is fed; above it the backlog grows and the run is that of endless work. Between the two a relay is bistable: fed
while its gate never closes, stuck behind a backlog once it has closed, because it then cycles and serves less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp, pi, sqrt

from policies.design.flow import Path
from policies.design.structure import OneForOne, RelayOnBusy, Structure
from scenarios.analyze.cycles import from_path
from scenarios.analyze.flowing import Flows
from scenarios.analyze.model import Plant
from scenarios.analyze.predict import ring_use
from scenarios.analyze.prediction import Prediction, quiet_word
from scenarios.catalogue.verdict import Word

EDGE_RATIO = 0.02
"""Arrivals this near a law's limit (as a share of it) drain or pile up by chance."""
EITHER: frozenset[Word] = frozenset({"steady", "quasi_cycle"})
OFTEN, SELDOM = 3.0, 0.1
"""Closings in a run by chance above which a gate is taken to be stuck, and below which to stay fed."""
BASIN_STEPS, MOST_POOLS = 5, 16.0


def under_arrivals(
    structure: Structure | None,
    plant: Plant,
    arrivals_per_s: float,
    window_s: tuple[float, float],
    flows: Flows,
    endless: Callable[[], Prediction],
    reason: str | None,
) -> Prediction:
    """Predict a run whose arrivals a full pool could serve.

    Parameters
    ----------
    structure, plant, window_s, flows, reason
        As in `predict`.
    arrivals_per_s : float
        Below slots / residence.
    endless : callable
        Returns the prediction while work always waits.
    """
    if isinstance(structure, RelayOnBusy) and structure.refuses:
        return endless()
    share = arrivals_per_s * plant.residence_s / plant.slots
    facts: dict[str, float | None] = {"offered_load_ratio": share}
    if flows.open_door:
        return _fed("arrivals below capacity, admission open", plant, share, facts)
    if structure is None:
        why = f"the law declares no structure ({reason or 'and no reason'}), so its own limit is not known"
        return Prediction(mechanism=f"arrivals below capacity: {why}", facts=facts, uncompared=why)
    if isinstance(structure, OneForOne):
        limit = ring_use(structure, plant) * plant.slots / plant.residence_s
        fed = None
    else:
        path = flows.path()
        limit = float(path.released.mean()) / path.step_s
        fed = flows.path(arrivals_per_s)
    facts["limit_per_s"] = limit
    if limit > arrivals_per_s * (1 + EDGE_RATIO) and (fed is None or not _grows(fed, arrivals_per_s)):
        text = f"arrivals below the law's own limit of {limit:.4g}/s: the pool is fed"
        base = _fed(text, plant, share, facts)
        if fed is None:
            return base
        prediction = from_path(base, fed, plant, window_s)
        return base if prediction.verdict == quiet_word(plant) else replace(prediction, facts=facts)
    if fed is not None and not _grows(fed, arrivals_per_s):
        return _bistable(structure, plant, arrivals_per_s, flows, endless(), facts, window_s)
    stuck = endless()
    also = stuck.also | EITHER if abs(limit / arrivals_per_s - 1) < EDGE_RATIO else stuck.also
    text = f"arrivals above the law's own limit of {limit:.4g}/s, so that a backlog grows: {stuck.mechanism}"
    return replace(stuck, mechanism=text, facts={**stuck.facts, **facts}, also=also)


def _fed(text: str, plant: Plant, share: float, facts: dict[str, float | None]) -> Prediction:
    return Prediction(mechanism=text, verdict=quiet_word(plant), utilization_ratio=share, facts=facts)


def _grows(path: Path, arrivals_per_s: float) -> bool:
    span_s = len(path.backlog) * path.step_s
    return float(path.backlog[-1] - path.backlog[0]) > 0.002 * arrivals_per_s * span_s


def _bistable(
    structure: Structure,
    plant: Plant,
    arrivals_per_s: float,
    flows: Flows,
    stuck: Prediction,
    facts: dict[str, float | None],
    window_s: tuple[float, float],
) -> Prediction:
    fed_ratio = arrivals_per_s * plant.residence_s / plant.slots
    closings = chance_closings(structure, plant, arrivals_per_s, window_s[1])
    backlog = basin_turns(flows, arrivals_per_s, plant.slots)
    facts |= {
        "fed_utilization_ratio": fed_ratio,
        "stuck_utilization_ratio": stuck.utilization_ratio,
        "stuck_from_backlog_turns": backlog,
        "closings_by_chance": closings,
    }
    text = (
        f"two branches: fed, steady at {fed_ratio:.3f}; or stuck behind a backlog (from {backlog:.0f} turns on), "
        f"{(stuck.verdict or 'no word').replace('_', ' ')} at {stuck.utilization_ratio or 0.0:.3f}"
    )
    if closings is not None and closings > OFTEN:
        return replace(
            stuck, mechanism=f"{text}; noise reaches the gate's level and it gets stuck", facts={**stuck.facts, **facts}
        )
    if closings is not None and closings < SELDOM:
        return _fed(f"{text}; noise does not reach the gate's level, so it stays fed", plant, fed_ratio, facts)
    why = "either branch may be met in a run: a matter of chance"
    return Prediction(mechanism=f"{text}; {why}", facts=facts, uncompared=why)


def chance_closings(structure: Structure, plant: Plant, arrivals_per_s: float, horizon_s: float) -> float | None:
    """Return how often a fed pool's own noise lifts it to a relay's closing level in a run; None: not a relay.

    Busy slots of a fed pool are Poisson of mean m = arrivals x T and forget themselves in T, so that they cross a level
    z standard deviations up (z / sqrt(2 pi)) e^{-z^2/2} / T times a second; at least once a T where the mean is there.
    """
    if not isinstance(structure, RelayOnBusy):
        return None
    mean = arrivals_per_s * plant.residence_s
    if not plant.noisy:
        return 0.0 if mean < structure.close_at_turns else horizon_s / plant.residence_s
    z = (min(structure.close_at_turns, plant.slots) - mean) / sqrt(mean)
    rate = 1.0 if z < 1 else z * exp(-z * z / 2) / sqrt(2 * pi)
    return rate * horizon_s / plant.residence_s


def basin_turns(flows: Flows, arrivals_per_s: float, slots: float) -> float:
    """Return the backlog at the start from which a pool gets stuck, by bisection; the most tried where none does."""
    low, high = slots / 256, MOST_POOLS * slots
    for _ in range(BASIN_STEPS):
        middle = sqrt(low * high)
        if flows.drains(arrivals_per_s, middle):
            low = middle
        else:
            high = middle
    return high
