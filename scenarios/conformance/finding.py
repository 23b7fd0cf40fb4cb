"""A question put to a law, and its answer."""

from __future__ import annotations

from dataclasses import dataclass


class Nonconforming(AssertionError):
    """A law does not do what every law must."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One question and its answer; `what` says what is wrong, or is empty."""

    question: str
    what: str

    @property
    def ok(self) -> bool:
        """Tell whether the law passes."""
        return not self.what
