"""Analyse a scenario: predict every candidate, and with `verify` measure it too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.messages import Slot
from policies.design.residence import EXPONENTIAL, measured_shape
from policies.design.structure import Declares, OneForOne, Structure, reads_plant, reason_for_none
from policies.design.tandem_model import TandemModel
from scenarios.analyze.flowing import Flows
from scenarios.analyze.loads import under_arrivals
from scenarios.analyze.model import Plant, plant_of
from scenarios.analyze.predict import predict
from scenarios.analyze.prediction import Prediction
from scenarios.analyze.scaling import Startup, predict_scaling
from scenarios.analyze.uncertain import Corner, worst_corner
from scenarios.analyze.verify import disagreements, measure
from scenarios.build import laws, plants
from scenarios.errors import UserError
from scenarios.schema.laws import Candidate
from scenarios.schema.scenario import Scenario
from scenarios.schema.settings import TelemetryPart

NONE = "none"
ENDLESS_RATIO = 0.8
MEASURED = "measured in the run itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One candidate: what theory expects, what was measured (None: not run), and where they differ.

    `others` holds, for every other slot in which a law acts, the reason why that law is not analysed here.
    `worst`: the worst corner of the scenario's uncertainty (None: it states none, or the loop has no theory).
    """

    candidate: str
    prediction: Prediction
    model: TandemModel | None
    source: str
    others: Mapping[str, str] = field(default_factory=dict)
    worst: Corner | None = None
    measured: dict[str, object] | None = None
    differences: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool | None:
        """Tell whether measurement agrees with prediction (None: not measured, or nothing was predicted)."""
        if self.differences:
            return False
        return None if self.measured is None or self.prediction.verdict is None else True

    @property
    def not_compared(self) -> str | None:
        """Return why a measured run was compared with nothing (None: not measured, or compared)."""
        return self.prediction.uncompared if self.measured is not None and self.agrees is None else None

    def to_json(self) -> dict[str, object]:
        """Return the object of `analyze --json` for this candidate."""
        return {
            "mechanism": self.prediction.mechanism,
            "prediction": self.prediction.numbers(),
            "margins": dict(self.prediction.margins),
            "model": None
            if self.model is None
            else {
                "slots": self.model.slots,
                "residence_s": self.model.residence_s,
                "pipeline_s": self.model.dead_time_s,
                "observation_s": self.model.observation_s,
                "residence_shape": str(self.model.shape),
                "dead_time_s": self.model.loop_delay_s,
                "source": self.source,
            },
            "worst_corner": None if self.worst is None else self.worst.to_json(),
            "measured": self.measured,
            "agrees": self.agrees,
            "not_compared": self.not_compared,
            "other_loops": dict(self.others),
            "differences": list(self.differences),
        }


def structure_of(candidate: Candidate, scenario: Scenario, model: TandemModel) -> tuple[Structure | None, str | None]:
    """Return what the candidate's admission law declares itself to be, and its reason where it declares nothing."""
    law = laws.make_law("admission", candidate.admission, scenario.period_s("admission", candidate.admission))
    return (law.structure(model) if isinstance(law, Declares) else None), reason_for_none(law)


def others_of(candidate: Candidate, scenario: Scenario, analysed: Slot) -> dict[str, str]:
    """Return, for every slot beside the analysed one in which a law acts, why that law is not analysed here."""
    laws_by_slot = laws.acting_laws(scenario, candidate)
    others = {slot: law for slot, law in laws_by_slot.items() if slot != analysed}
    return {slot: reason_for_none(law) or "its own loop: not part of this analysis" for slot, law in others.items()}


def analyze(
    scenario: Scenario,
    *,
    identified: TandemModel | None = None,
    open_per_s: float | None = None,
    residences_s: tuple[tuple[float, float], ...] = (),
    startups: Mapping[str, Startup] | None = None,
    unidentified: str | None = None,
    verify: bool = False,
    seeds: int = 1,
    jobs: int = 1,
    done: Callable[[int, int], None] | None = None,
) -> list[Analysis]:
    """Analyse every candidate of a scenario.

    Parameters
    ----------
    scenario : Scenario
    identified : TandemModel, optional
        The plant that an experiment identified; needed where the plant declares no model.
    open_per_s : float, optional
        The rate at which that plant fills turns for its decode pool when admission is open, turns/s.
    residences_s : tuple of (float, float)
        Its mean residence in an empty and in a full pool, seconds: as measured, and at either end of the confidence.
    startups : mapping of str to Startup, optional
        How long an order takes to serve, by configuration, where an experiment measured it.
    unidentified : str, optional
        Why no experiment identifies the plant; each run is then compared with theory for the plant that it measured.
    verify : bool
        Also run each candidate and compare the measurement with the prediction.
    seeds, jobs : int
        How many seeds a candidate is run on, and in how many processes.
    done : callable, optional
        Called after each finished run with (done, total).

    Raises
    ------
    UserError
        The plant or the workload has no analysis, or no candidate can be analysed.
    """
    plant, reason = None, unidentified
    if needs_plant(scenario) and reason is None:
        try:
            plant = plant_of(scenario, identified, open_per_s, residences_s)
        except UserError as error:
            if identified is None:
                raise
            reason = str(error)
    analyses = [_without_runs(scenario, candidate, plant, startups, reason) for candidate in scenario.candidates]
    runs = {analysis.candidate: analysis.prediction.signal for analysis in analyses}
    if not verify and all(analysis.source == NONE for analysis in analyses):
        raise UserError(analyses[0].prediction.uncompared)
    if not verify:
        return analyses
    measured = measure(scenario, runs, seeds, jobs, done)
    declared = identified is None
    return [_compared(scenario, analysis, measured[analysis.candidate], declared) for analysis in analyses]


def _without_runs(
    scenario: Scenario,
    candidate: Candidate,
    plant: Plant | None,
    startups: Mapping[str, Startup] | None,
    reason: str | None,
) -> Analysis:
    if plant is None and not scales(candidate):
        hinted = reason is not None and "--verify" in reason
        hint = "" if hinted else "; --verify takes the plant that the run itself measures"
        return _not_analysed(candidate.name, f"{reason}{hint}")
    return _predicted(scenario, candidate, plant, startups)


def _not_analysed(name: str, reason: str) -> Analysis:
    prediction = Prediction(mechanism=f"not analysed: {reason}", uncompared=reason)
    return Analysis(candidate=name, prediction=prediction, model=None, source=NONE)


def _compared(scenario: Scenario, analysis: Analysis, measured: Mapping[str, Any], declared: bool) -> Analysis:
    if analysis.source == NONE:
        plant = _measured_plant(scenario, {"measured": measured.get("plant")})
        if plant is None:
            analysis = _not_analysed(analysis.candidate, "the run itself shows no plant: no turn retired in its window")
        else:
            analysis, declared = _predicted(scenario, scenario.candidate(analysis.candidate), plant), False
    numbers = {name: value for name, value in measured.items() if name != "plant"}
    tick_s = scenario.period_s("admission", scenario.candidate(analysis.candidate).admission)
    seen = {"bin_s": scenario.bin_s, "tick_s": tick_s}
    differences = tuple(disagreements(analysis.prediction, measured, declared, **seen))
    return replace(analysis, measured=numbers, differences=differences)


def expected_of_run(scenario: Scenario, candidate: str, summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what theory expects of a run; None where it makes no prediction.

    A plant of workers declares no dead time and no residence, but its run shows both, so theory takes the plant
    that this run measured; work counts as endless where turns waited for admission for 80 % of the window.
    """
    try:
        plant = _measured_plant(scenario, summary) if plants.declared(scenario) is None else plant_of(scenario)
    except UserError:  # the workload has no analysis
        return None
    expected = None if plant is None else _predicted(scenario, scenario.candidate(candidate), plant).prediction
    if expected is None or expected.verdict is None:
        return None
    used = expected.utilization_ratio
    # An idle slot is a loss only while work waits for it.
    endless = plant is not None and plant.arrivals_per_s is None
    return {
        "signal": expected.signal,
        "verdict": expected.verdict,
        "period_s": expected.period_s,
        "decode_utilization_ratio": used,
        "loss_ratio": 1.0 - used if used is not None and endless else None,
        "mechanism": expected.mechanism,
    }


def _measured_plant(scenario: Scenario, summary: Mapping[str, Any]) -> Plant | None:
    estimate = summary.get("measured")
    if not estimate or not estimate["slots"] >= 1.0 or estimate["residence_s"] <= 0.0:
        return None
    return Plant(
        slots=estimate["slots"],
        residence_s=estimate["residence_s"],
        dead_time_s=estimate["dead_time_s"],
        dead_times_s=tuple(estimate.get("dead_times_s") or ()),  # a record of an older version has none
        shape=EXPONENTIAL if not estimate.get("residences_s") else measured_shape(estimate["residences_s"]),
        ceiling_per_s=scenario.admission.max_release_per_s,
        arrivals_per_s=None if estimate["backlogged_ratio"] >= ENDLESS_RATIO else estimate["arrival_per_s"],
        noisy=True,
        source=MEASURED,
    )


def needs_plant(scenario: Scenario) -> bool:
    """Tell whether any candidate is analysed by its admission loop; capacity loops need no model of the pool."""
    return any(not scales(candidate) for candidate in scenario.candidates)


def scales(candidate: Candidate) -> bool:
    """Tell whether a candidate is about capacity: a capacity law acts, and admission is open or holds a fixed load."""
    return candidate.admission.kind in ("hold", "credit") and candidate.capacity.kind != "hold"


def _predicted(
    scenario: Scenario, candidate: Candidate, plant: Plant | None, startups: Mapping[str, Startup] | None = None
) -> Analysis:
    if scales(candidate) or plant is None:
        prediction, source = predict_scaling(candidate, scenario, startups)
        near = others_of(candidate, scenario, "capacity")
        return Analysis(candidate=candidate.name, prediction=prediction, model=None, source=source, others=near)
    prediction, model = _of_admission(scenario, candidate, plant)
    near = others_of(candidate, scenario, "admission")
    worst = None
    if scenario.uncertainty is not None:
        worst = worst_corner(scenario.uncertainty, plant, lambda other: _of_admission(scenario, candidate, other)[0])
    return Analysis(
        candidate=candidate.name, prediction=prediction, model=model, source=plant.source, others=near, worst=worst
    )


def _of_admission(scenario: Scenario, candidate: Candidate, plant: Plant) -> tuple[Prediction, TandemModel]:
    model = plant.seen_by(scenario, scenario.period_s("admission", candidate.admission))
    structure, reason = structure_of(candidate, scenario, model)
    if scenario.telemetry.ledger == "fresh" and not reads_plant(structure):
        scenario = scenario.model_copy(update={"telemetry": TelemetryPart()})
        model = plant.seen_by(scenario, scenario.period_s("admission", candidate.admission))
        structure, reason = structure_of(candidate, scenario, model)
    arrivals = plant.arrivals_per_s
    if arrivals is not None and arrivals >= plant.slots / plant.residence_s:
        arrivals = None
    if isinstance(structure, OneForOne):
        # Such a law acts at each retirement, not at ticks.
        model = plant.seen_by(scenario, 0.0)
    flows, window_s = Flows(scenario, candidate, plant), (scenario.warmup_s, scenario.horizon_s)

    def endless() -> Prediction:
        return predict(structure, plant, model, window_s, reason, flows)

    if arrivals is None:
        return endless(), model
    return under_arrivals(structure, plant, arrivals, window_s, flows, endless, reason), model
