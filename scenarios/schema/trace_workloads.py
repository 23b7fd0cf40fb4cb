"""Workloads of conversations and of traces: lanes, arriving sessions, replay by time stamp, and mixtures of these."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import Count, NotNegative, Positive, ScenarioTable, Share


class Conversations(ScenarioTable):
    """Where recorded or generated conversations come from, and how they are read.

    `share_prefix`: sessions of equal tool and system lengths share that leading part. `main_stream_only`: leave the
    sub-agents out. Filters come before the cap `limit`: conversations whose largest prompt and answer exceed
    `max_context_tokens`, or with fewer than `min_requests`, are left out and counted.

    `think_times`: a stated think time longer than the interval between two starts is no wait since the last end, so the
    wait is derived from the starts; "stated" plays it all the same, as figures published elsewhere were made.
    """

    think_times: Literal["possible", "stated"] = "possible"
    share_prefix: bool = False
    main_stream_only: bool = False
    max_context_tokens: Count | None = None
    min_requests: Count = 1
    limit: Count | None = None


class GeneratedConversations(Conversations):
    """So many made conversations; `corpus_seed` belongs to the corpus, whatever the run's seed."""

    kind: Literal["generated"]
    preset: Literal["agentx", "agentx_subagents", "chat", "rag", "batch"]
    sessions: Count
    corpus_seed: Annotated[int, Field(ge=0)] = 0


class TraceConversations(Conversations):
    """A trace of any format that a reader takes; a relative `path` is looked up from the working directory.

    `subagent_clock`, `block_tokens`, `delta` and `drop_doubles` are for formats that leave these open; `corpus_seed`
    and `generate_s` for those that are parameters of a generator. `columns` ("arrived=ts,input=prompt_len,...") reads
    any table; `time_unit` is the unit of stamps and waits where the format's own does not hold; `spread_stamps` draws
    starts within the grain of a coarse clock, by `corpus_seed`. See the guide to traces.
    """

    kind: Literal["trace"]
    path: str
    format: str = "auto"
    on_error: Literal["raise", "repair", "skip"] = "repair"
    subagent_clock: Literal["auto", "relative", "absolute"] = "auto"
    block_tokens: Count | None = None
    delta: bool = False
    drop_doubles: bool = False
    columns: str | None = None
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    spread_stamps: bool = False
    corpus_seed: Annotated[int, Field(ge=0)] = 1
    generate_s: Positive = 3_600.0


AnyConversations = Annotated[GeneratedConversations | TraceConversations, Field(discriminator="kind")]


class ModulatedArrivals(ScenarioTable):
    """A Markov-modulated rate: each state holds for an exponential time, then the next in turn follows."""

    kind: Literal["mmpp"]
    rates_per_s: Annotated[tuple[NotNegative, ...], Field(min_length=2)]
    dwells_s: Annotated[tuple[Positive, ...], Field(min_length=2)]


class DiurnalArrivals(ScenarioTable):
    """A day: mean (1 + swing cos(2 pi (t - peak) / period))."""

    kind: Literal["diurnal"]
    mean_per_s: Positive
    swing_ratio: Share
    period_s: Positive = 86_400.0
    peak_s: NotNegative = 50_400.0


class RampPoint(ScenarioTable):
    """The rate at an instant; straight between points."""

    at_s: NotNegative
    rate_per_s: NotNegative


class RampArrivals(ScenarioTable):
    """A rate through points; with `period_s` they repeat."""

    kind: Literal["ramp"]
    points: Annotated[tuple[RampPoint, ...], Field(min_length=1)]
    period_s: Positive | None = None


class BurstArrivals(ScenarioTable):
    """A base rate, and a higher one for `length_s` of every `every_s`."""

    kind: Literal["bursts"]
    base_per_s: NotNegative
    burst_per_s: Positive
    every_s: Positive
    length_s: Positive


Arrivals = Annotated[ModulatedArrivals | DiurnalArrivals | RampArrivals | BurstArrivals, Field(discriminator="kind")]


class Played(ScenarioTable):
    """What workloads of conversations share. `service_class`: the class of their turns (None: the first).

    A request starts only after what it follows has ended, plus its gap. `tree_idle_cap_s` bounds the idle time of one
    session, `system_idle_cap_s` that of all (None: no bound): conventions that change the load at equal sessions.
    """

    conversations: AnyConversations
    service_class: str | None = None
    tree_idle_cap_s: NotNegative | None = None
    system_idle_cap_s: NotNegative | None = None


class LanesWorkload(Played):
    """So many live sessions: a lane whose session has ended draws the next. Independent rows: fixed concurrency.

    The first session of each lane is cut at a point uniform in `start_window` (shares of its recorded run); with
    `primer` the request before the cut is sent first, then its prompt `warmup_turns` times for one token each.
    `order` "in_turn": each conversation is played once before any comes again.
    """

    kind: Literal["lanes"]
    lanes: Count
    start_window: tuple[Share, Share] = (0.25, 0.75)
    primer: bool = True
    warmup_turns: Annotated[int, Field(ge=0)] = 0
    ramp_s: NotNegative = 0.0
    recycle: bool = True
    order: Literal["drawn", "in_turn"] = "drawn"

    @model_validator(mode="after")
    def _window_in_order(self) -> LanesWorkload:
        if self.start_window[0] > self.start_window[1]:
            raise ValueError("start_window must rise: [from, to], as shares of the recorded run")
        return self


class SessionsWorkload(Played):
    """Sessions that arrive by themselves: at `rate_per_s` (`gap_cv_ratio` 1: Poisson), or by `arrivals`."""

    kind: Literal["sessions"]
    rate_per_s: Positive | None = None
    gap_cv_ratio: NotNegative = 1.0
    arrivals: Arrivals | None = None
    sessions: Count | None = None

    @model_validator(mode="after")
    def _one_process(self) -> SessionsWorkload:
        if (self.rate_per_s is None) == (self.arrivals is None):
            raise ValueError("sessions arrive by rate_per_s or by arrivals: give one of them")
        return self


class ReplayWorkload(ScenarioTable):
    """Requests at their recorded instants; `rate_factor` scales all intervals, the idle cap with them.

    `from_s` and `to_s` keep stamps between them, both inclusive, in recorded seconds after the first stamp.
    """

    kind: Literal["replay"]
    conversations: AnyConversations
    service_class: str | None = None
    rate_factor: Positive = 1.0
    idle_cap_s: Positive | None = None
    from_s: NotNegative | None = None
    to_s: NotNegative | None = None


class MixtureWorkload(ScenarioTable):
    """Several workloads at once, each under its own name, with its own class."""

    kind: Literal["mixture"]
    parts: Annotated[
        dict[str, Annotated[LanesWorkload | SessionsWorkload | ReplayWorkload, Field(discriminator="kind")]],
        Field(min_length=1),
    ]


Traffic = LanesWorkload | SessionsWorkload | ReplayWorkload | MixtureWorkload
