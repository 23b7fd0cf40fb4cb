"""A world that fails is made small: parts are taken away one after another for as long as the same law breaks."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from scenarios.errors import UserError
from scenarios.fuzz.invariants import Broken, broken_law
from scenarios.fuzz.worlds import scenario_of

Table = dict[str, Any]  # a table of TOML, whose values are of several types
TRIES, SHORTEST_S = 80, 10.0
GONE = object()
PARTS = ("drain_s", "ready", "clients", "dispatch", "telemetry", "reconfigure", "admission", "control")


def shrunk(raw: Table, broken: Broken, tries: int = TRIES) -> tuple[Table, Broken]:
    """Return a smaller world that breaks the same law, and what was seen there.

    Parameters
    ----------
    raw : dict
        The tables of a scenario file.
    tries : int
        Most runs to spend.
    """
    spent, progress = 0, True
    while progress and spent < tries:
        progress = False
        for smaller in _smaller(raw):
            if spent >= tries:
                break
            spent += 1
            failure = _check(smaller)
            if failure is not None and failure.law == broken.law:
                raw, broken, progress = smaller, failure, True
                break
    return raw, broken


def _check(raw: Table) -> Broken | None:
    try:
        return broken_law(scenario_of(raw))
    except UserError:  # the parts do not fit together without the one that was taken away
        return None


def _smaller(raw: Table) -> Iterator[Table]:
    """Yield copies of a world, each without one part; large parts first."""
    plant, candidate = raw["plant"], raw["candidates"][0]
    cuts: list[tuple[list[str | int], Any]] = []  # where, and what to put there; GONE takes it away
    faults = plant.get("faults", [])
    if len(faults) > 1:
        cuts.append((["plant", "faults"], []))
    cuts += [(["plant", "faults", i], GONE) for i in range(len(faults))]
    cuts += [(["candidates", 0, slot], GONE) for slot in candidate if slot != "name"]
    cuts += [([part], GONE) for part in PARTS if raw.get(part)]
    cuts += [(["plant", "kv"], GONE)] if plant.get("kv") else []
    cuts += [(["classes", "batch"], GONE)] if "batch" in raw.get("classes", {}) else []
    cuts += [(["horizon_s"], raw["horizon_s"] / 2)] if raw["horizon_s"] > SHORTEST_S else []
    for i, pool in enumerate(plant.get("pools", [])):
        if pool["workers"] > 1:
            cuts.append((["plant", "pools", i, "workers"], pool["workers"] - 1))
    for path, value in cuts:
        smaller = copy.deepcopy(raw)
        here: Any = smaller  # a table or a list of tables
        for step in path[:-1]:
            here = here[step]
        if value is GONE:
            del here[path[-1]]
        else:
            here[path[-1]] = value
        smaller["warmup_s"] = min(smaller["warmup_s"], smaller["horizon_s"] / 10)
        yield smaller
