"""Search random worlds for one that breaks a law; each failure becomes a small file and the command that repeats it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from scenarios.build.laws.file import class_of, parsed, slot_of
from scenarios.fuzz.invariants import Broken, broken_law
from scenarios.fuzz.shrink import TRIES, shrunk
from scenarios.fuzz.worlds import scenario_of, world
from scenarios.schema.load import load


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A world that broke a law, made small."""

    world: int
    broken: Broken
    toml: str

    def write(self, folder: Path) -> Path:
        """Write the world to a file of its own and return the path."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.broken.law}_{self.world}.toml"
        path.write_text(self.toml, encoding="utf-8")
        return path


def search(
    seed: int,
    worlds: range,
    law: str | None = None,
    done: Callable[[int], None] | None = None,
    tries: int = TRIES,
) -> Iterator[Failure]:
    """Run the worlds of these numbers and yield every failure, shrunk.

    Parameters
    ----------
    seed : int
    worlds : range
    law : str, optional
        `path/to/law.py:Class(name=value, ...)`, in its slot in every world.
    done : callable, optional
        Called with the number of each world that has been run.
    tries : int
        Most runs to spend on making one failure small.

    Raises
    ------
    UserError
        The law cannot be read, or fills no slot.
    """
    fixed = None if law is None else _law_table(law)
    for number in worlds:
        raw = world(seed, number, fixed)
        broken = broken_law(scenario_of(raw))
        if broken is not None and broken.law != "refused":
            small, seen = shrunk(raw, broken, tries)
            yield Failure(world=number, broken=seen, toml=tomli_w.dumps(small))
        if done is not None:
            done(number)


def replayed(path: Path) -> Broken | None:
    """Check a world that was written before; return the law that it breaks, or None."""
    return broken_law(load(path))


def _law_table(law: str) -> tuple[str, dict[str, Any]]:
    part = parsed(law)
    slot = slot_of(class_of(part), part)
    return slot, part.model_dump(mode="json") | {"file": str(Path(part.file).resolve())}
