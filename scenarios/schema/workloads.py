"""Where a scenario's turns come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Count, NotNegative, Positive, ScenarioTable
from scenarios.schema.trace_workloads import Traffic


class LengthLaw(ScenarioTable):
    """A law of token counts; `high_tokens` is the upper end of a uniform law that begins at `mean_tokens`."""

    shape: Literal["fixed", "uniform", "exponential", "lognormal"] = "fixed"
    mean_tokens: Annotated[float, Field(ge=1.0)]
    cv_ratio: Positive = 1.0
    high_tokens: NotNegative = 0.0

    @model_validator(mode="after")
    def _ordered(self) -> LengthLaw:
        if self.shape == "uniform" and self.high_tokens < self.mean_tokens:
            raise ValueError("a uniform law needs high_tokens >= mean_tokens, its lower end")
        if self.cv_ratio != 1.0 and self.shape != "lognormal":
            raise ValueError(f'cv_ratio would have no effect: shape = "{self.shape}"; "lognormal" has a cv_ratio')
        if self.high_tokens != 0.0 and self.shape != "uniform":
            raise ValueError(f'high_tokens would have no effect: shape = "{self.shape}"; "uniform" has an upper end')
        return self


class ClassShare(ScenarioTable):
    """A class's share of the turns, and its own lengths where they differ."""

    share: Positive = 1.0
    prompt: LengthLaw | None = None
    output: LengthLaw | None = None


class Synthetic(ScenarioTable):
    """What workloads without a trace share."""

    prompt: LengthLaw = LengthLaw(mean_tokens=1024)
    output: LengthLaw = LengthLaw(mean_tokens=128)
    by_class: dict[str, ClassShare] = Field(default_factory=dict)


class SaturatedWorkload(Synthetic):
    """Never fewer than `waiting_turns` at the door."""

    kind: Literal["saturated"]
    waiting_turns: Count


class PoissonWorkload(Synthetic):
    """Independent arrivals at a constant rate; `turns` ends it after so many."""

    kind: Literal["poisson"]
    rate_per_s: Positive
    turns: Count | None = None


class StepPoint(ScenarioTable):
    """From `at_s` on, turns arrive at `rate_per_s`."""

    at_s: NotNegative
    rate_per_s: NotNegative


class StepWorkload(Synthetic):
    """Poisson arrivals whose rate changes at stated instants."""

    kind: Literal["step"]
    steps: Annotated[tuple[StepPoint, ...], Field(min_length=1)]
    turns: Count | None = None

    @model_validator(mode="after")
    def _in_order(self) -> StepWorkload:
        times = [step.at_s for step in self.steps]
        if times[0] != 0.0 or times != sorted(set(times)):
            raise ValueError("steps must begin at at_s = 0 and rise")
        return self


class RequestsWorkload(ScenarioTable):
    """Requests over HTTP, which `steadyflow serve` takes; no simulated run can play them.

    `model`: the name under which they ask for it. `output_tokens`: length of an answer where the request states none.
    `block_tokens`: the prefix of a prompt is kept in blocks of so many. `tokenizer`: path of a tokenizer.json (None: a
    token is a word between white space). `service_class`: the class of their turns (None: the first).
    """

    kind: Literal["requests"]
    model: Annotated[str, Field(min_length=1)] = "sim-model"
    output_tokens: Count = 128
    block_tokens: Count = 16
    tokenizer: str | None = None
    service_class: str | None = None


SyntheticWorkload = SaturatedWorkload | PoissonWorkload | StepWorkload
Workload = Annotated[SyntheticWorkload | Traffic | RequestsWorkload, Field(discriminator="kind")]
