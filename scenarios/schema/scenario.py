"""One scenario file as the rest of the code sees it: its contents, checked against each other, and its file's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import PrivateAttr, model_validator

from scenarios.errors import UserError
from scenarios.schema.checks.expected import refuse_impossible_expectations
from scenarios.schema.checks.ignored_keys import refuse_idle_keys
from scenarios.schema.checks.reachable import refuse_unreachable_thresholds
from scenarios.schema.checks.recorded_times import refuse_migration_of_recorded_turns, refuse_times_without_record
from scenarios.schema.checks.references import refuse_unknown_names
from scenarios.schema.checks.servable import refuse_unable_plant
from scenarios.schema.checks.timing import refuse_endless_runs, refuse_idle_or_hasty_loops
from scenarios.schema.contents import ScenarioContents

# In this order: of several mistakes the first is reported.
CHECKS = (
    refuse_impossible_expectations,
    refuse_endless_runs,
    refuse_idle_or_hasty_loops,
    refuse_migration_of_recorded_turns,
    refuse_times_without_record,
    refuse_unknown_names,
    refuse_unable_plant,
    refuse_unreachable_thresholds,
    refuse_idle_keys,
)


class Scenario(ScenarioContents):
    """A scenario whose parts fit together."""

    _file: str = PrivateAttr(default="")

    @property
    def file(self) -> str:
        """Name of the file that this was read from, for errors; empty: from none."""
        return self._file

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Put the file's name before the user's mistakes that show only when its parts are built."""
        try:
            yield
        except UserError as error:
            if not self._file or str(error).startswith(f"{self._file}: "):
                raise
            raise type(error)(f"{self._file}: {error}") from error

    def read_from(self, file: str) -> Scenario:
        """Return the scenario, which remembers the name of its file from now on."""
        self._file = file
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Scenario:
        if self.horizon_s <= self.warmup_s:
            raise ValueError(f"horizon_s = {self.horizon_s:g} must exceed warmup_s = {self.warmup_s:g}")
        names = [candidate.name for candidate in self.candidates]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two candidates are named {twice}")
        if not self.classes:
            raise ValueError("classes: there must be at least one")
        for check in CHECKS:
            check(self)
        return self
