"""Where a scenario's turns come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Count, NotNegative, Part, Positive, Share


class LengthLaw(Part):
    """A law of token counts; `high_tokens` is the upper end of a uniform law that begins at `mean_tokens`."""

    shape: Literal["fixed", "uniform", "exponential", "lognormal"] = "fixed"
    mean_tokens: Annotated[float, Field(ge=1.0)]
    cv_ratio: Positive = 1.0
    high_tokens: NotNegative = 0.0

    @model_validator(mode="after")
    def _ordered(self) -> LengthLaw:
        if self.shape == "uniform" and self.high_tokens < self.mean_tokens:
            raise ValueError("a uniform law needs high_tokens >= mean_tokens, its lower end")
        return self


class ClassShare(Part):
    """A class's share of the turns, and its own lengths where they differ."""

    share: Positive = 1.0
    prompt: LengthLaw | None = None
    output: LengthLaw | None = None


class Synthetic(Part):
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


class StepPoint(Part):
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


class Conversations(Part):
    """Where recorded or generated conversations come from, and how they are read.

    `share_prefix`: sessions of equal tool and system lengths share that leading part. `main_stream_only`: leave the
    sub-agents out.
    """

    share_prefix: bool = False
    main_stream_only: bool = False


class GeneratedConversations(Conversations):
    """So many made conversations; `corpus_seed` belongs to the corpus, whatever the run's seed."""

    kind: Literal["generated"]
    preset: Literal["agentx", "agentx_subagents", "chat", "rag", "batch"]
    sessions: Count
    corpus_seed: Annotated[int, Field(ge=0)] = 0


class TraceConversations(Conversations):
    """A trace of any format that a reader takes."""

    kind: Literal["trace"]
    path: str
    format: str = "auto"
    on_error: Literal["raise", "repair", "skip"] = "repair"


AnyConversations = Annotated[GeneratedConversations | TraceConversations, Field(discriminator="kind")]


class Played(Part):
    """What workloads of conversations share. `service_class`: the class of their turns (None: the first).

    A request starts only after what it follows has ended, plus its gap. `tree_idle_cap_s` bounds the idle time of one
    session, `system_idle_cap_s` that of all (None: no bound).
    """

    conversations: AnyConversations
    service_class: str | None = None
    tree_idle_cap_s: NotNegative | None = None
    system_idle_cap_s: NotNegative | None = None


class LanesWorkload(Played):
    """So many live sessions: a lane whose session has ended draws the next.

    The first session of each lane is cut at a point uniform in `start_window` (shares of its recorded run); with
    `primer` the request before the cut is sent first.
    """

    kind: Literal["lanes"]
    lanes: Count
    start_window: tuple[Share, Share] = (0.25, 0.75)
    primer: bool = True
    ramp_s: NotNegative = 0.0
    recycle: bool = True


class SessionsWorkload(Played):
    """Sessions that arrive by themselves; `gap_cv_ratio` 1 is a Poisson process."""

    kind: Literal["sessions"]
    rate_per_s: Positive
    gap_cv_ratio: NotNegative = 1.0
    sessions: Count | None = None


Workload = Annotated[
    SaturatedWorkload | PoissonWorkload | StepWorkload | LanesWorkload | SessionsWorkload, Field(discriminator="kind")
]
