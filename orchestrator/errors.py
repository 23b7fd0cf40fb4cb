"""What may go wrong, by who must act on it.

Plant outcomes cross the seam as exceptions set on a Future; kernel faults are our own mistakes and carry their story.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.turn import KvRef


class SteadyflowError(Exception):
    """The root of every error raised on purpose."""


class Preempted(SteadyflowError):
    """A decode batch ran out of KV memory and gave this turn back; it returns to the ready buffer."""


class WorkerLost(SteadyflowError):
    """The worker failed; work that it held must be placed elsewhere."""


class Evicted(SteadyflowError):
    """The worker is to serve another purpose, by plan, and sends this turn on.

    `kv`: the turn's state, which lies there until it is staged elsewhere; None: there is none, or it is given up.
    """

    def __init__(self, kv: KvRef | None = None) -> None:
        super().__init__("its worker changes its configuration")
        self.kv = kv


class ContextOverflow(SteadyflowError):
    """The context of this turn fits in no worker."""


class RebuildNeeded(SteadyflowError):
    """The KV state that this turn needs is gone; its text is kept, so a fill can make it again."""


class LawFailed(SteadyflowError):
    """A law raised, or returned what is no command of its slot: the line names law, instant and reading."""


class LoadFailed(SteadyflowError):
    """A worker did not come up in the configuration it was to load; it may be tried again."""


class Deadlock(SteadyflowError):
    """Nothing is ready and no timer is set while tasks still wait."""


class Livelock(SteadyflowError):
    """Too many callbacks ran without the clock moving."""


class ForeignThread(SteadyflowError):
    """A thread other than the loop's own touched a virtual loop, or work was sent to an executor."""


class InvalidTransition(SteadyflowError):
    """A turn or a worker was moved against its transition table.

    Parameters
    ----------
    subject : str
        What was moved, as `turn 7` or `worker 3`.
    start, finish : str
        Names of the stages.
    story : sequence of (float, str)
        Its moves so far, as (seconds, stage).
    """

    def __init__(self, subject: str, start: str, finish: str, story: Sequence[tuple[float, str]]) -> None:
        moves = " -> ".join(f"{stage}@{at_s:.6g}s" for at_s, stage in story)
        super().__init__(f"{subject} may not go from {start} to {finish}; its story: {moves}")
        self.subject, self.start, self.finish, self.story = subject, start, finish, tuple(story)
