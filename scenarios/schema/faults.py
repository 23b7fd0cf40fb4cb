"""What befalls a scenario's plant and its telemetry, and what its clients do when they are refused."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scenarios.schema.base import NotNegative, Positive, ScenarioTable, Share

WorkerNumber = Annotated[int, Field(ge=0)]
ON_WORKERS = ("lost", "slowed", "worsening", "flapping")
TARGETS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(ON_WORKERS, ("worker", "workers", "rack")),
    "link_down": ("rack", "link"),
    "storage_lost": ("link",),
    "poisoned": (),
}


class Fault(ScenarioTable):
    """Something that befalls the plant at `at_s`, for `for_s` (None: for good).

    `lost`, `slowed`, `worsening` and `flapping` strike a `worker`, the `workers` of a node, or those of a `rack`;
    `link_down` a rack's uplink or a storage server's `link`; `storage_lost` the server behind a `link`, with what only
    it keeps. `factor_ratio` is the share that is left: of a slowed worker's speed (None: half), of a link's rate
    (None: nothing). A worsening worker comes down to it in eight steps over `for_s`; a flapping one is slow for the
    first half of each `period_s`. `poisoned`: the `share_ratio` of turns kills the worker that decodes them, `after_s`
    from the begin, at every attempt; the worker is back after `back_s`.
    """

    kind: Literal["lost", "slowed", "worsening", "flapping", "link_down", "storage_lost", "poisoned"]
    at_s: NotNegative
    for_s: Positive | None = None
    worker: WorkerNumber | None = None
    workers: Annotated[tuple[WorkerNumber, ...], Field(min_length=1)] | None = None
    rack: WorkerNumber | None = None
    link: str | None = None
    factor_ratio: Share | None = None
    period_s: Positive | None = None
    share_ratio: Share | None = None
    after_s: NotNegative = 0.1
    back_s: Positive = 10.0

    @model_validator(mode="after")
    def _of_its_kind(self) -> Fault:
        kind = self.kind
        targets = {"worker": self.worker, "workers": self.workers, "rack": self.rack, "link": self.link}
        named = [name for name, value in targets.items() if value is not None]
        allowed = TARGETS[kind]
        if len(named) != bool(allowed) or not set(named) <= set(allowed):
            wanted = " or ".join(allowed) or "no worker, rack or link"
            raise ValueError(f"a fault of kind {kind} names one of: {wanted}" if allowed else f"{kind} names {wanted}")
        if kind in ("worsening", "flapping") and self.for_s is None:
            raise ValueError(f"for_s is missing: a {kind} worker is so for a stated time")
        if (kind == "flapping") != (self.period_s is not None):
            raise ValueError("period_s is missing" if kind == "flapping" else "period_s would have no effect")
        if (kind == "poisoned") != (self.share_ratio is not None):
            raise ValueError("share_ratio is missing" if kind == "poisoned" else "share_ratio would have no effect")
        if self.factor_ratio == 0.0 and kind in ON_WORKERS:
            raise ValueError('factor_ratio = 0 leaves no speed at all: use kind = "lost"')
        return self


class TelemetryFault(ScenarioTable):
    """Something that befalls the readings of all laws at `at_s`, for `for_s` (None: for good).

    `frozen`: no new sample comes, and readings grow old. `repeated`: the last sample comes again and again with a fresh
    time stamp. `empty`: the `share_ratio` of the workers of a `configuration` report that they hold nothing.
    """

    kind: Literal["frozen", "repeated", "empty"]
    at_s: NotNegative
    for_s: Positive | None = None
    configuration: str | None = None
    share_ratio: Share = 1.0

    @model_validator(mode="after")
    def _of_its_kind(self) -> TelemetryFault:
        if (self.kind == "empty") != (self.configuration is not None):
            raise ValueError(
                "configuration is missing: whose workers report empty?"
                if self.kind == "empty"
                else f"configuration would have no effect: all readings are {self.kind}"
            )
        return self


class ClientsPart(ScenarioTable):
    """What clients do when a turn of theirs is refused or fails: they send it again, `attempts` times at most.

    Attempt k comes after `wait_s` x `backoff_ratio`^(k - 1), `most_wait_s` at most, less a share of up to
    `jitter_ratio` of it, drawn (1: anywhere between 0 and the wait). With a `budget_ratio`, attempts are at most that
    share of the turns that were sent for the first time.
    """

    attempts: Annotated[int, Field(ge=0, le=1000)] = 0
    wait_s: Positive = 1.0
    backoff_ratio: Annotated[float, Field(ge=1.0)] = 2.0
    most_wait_s: Positive = 60.0
    jitter_ratio: Share = 0.0
    budget_ratio: NotNegative | None = None
