"""Random scenarios over plants, traffic, laws in every slot, faults and telemetry; small enough for a second or two."""

from __future__ import annotations

import copy
from typing import Any

from orchestrator.rng import mix
from scenarios.conformance.shipped import examples
from scenarios.errors import UserError
from scenarios.fuzz.draws import Draws
from scenarios.schema.laws.registry import SLOTS
from scenarios.schema.load import validate
from scenarios.schema.scenario import Scenario

Table = dict[str, Any]  # a table of TOML, whose values are of several types
HORIZON_S = 60.0
DRAWN_AGAIN = 40
LAW_RATIO, FAULTS_MOST = 0.4, 4
# The laws' examples are of a hundred slots; here there are a few workers.
FEW = {"low_workers": (1, 2), "high_workers": (2, 5), "most_workers": (2, 5), "threshold_workers": (1, 3),
       "hold_s": (1, 8), "down_s": (1, 8)}  # fmt: skip


def world(seed: int, number: int, law: tuple[str, Table] | None = None) -> Table:
    """Return random world `number` of a seed, as the tables of a scenario file.

    Parts that do not fit together are drawn again.

    Parameters
    ----------
    seed, number : int
    law : (str, table), optional
        A slot and the law that it has in every world; the other slots are drawn.

    Raises
    ------
    UserError
        The law fits none of the worlds that were drawn.
    """
    refused: UserError | None = None
    for attempt in range(DRAWN_AGAIN):
        raw = _drawn(Draws(seed, mix(number, attempt)), f"random world {number} of seed {seed}", law)
        try:
            scenario_of(raw)
        except UserError as error:
            refused = error
        else:
            return raw
    raise UserError(f"no world of {DRAWN_AGAIN} takes the law: {refused}")


def scenario_of(raw: Table) -> Scenario:
    """Return the scenario that tables mean; raises UserError where they mean none."""
    return validate(copy.deepcopy(raw), "world")


def _drawn(draws: Draws, title: str, law: tuple[str, Table] | None) -> Table:
    raw: Table = {
        "title": title,
        "question": "Does every invariant hold?",
        "seed": draws.integer(0, 10**6),
        "horizon_s": HORIZON_S,
        "warmup_s": 10.0,
    }
    if draws.chance(0.15) and (law is None or law[0] in ("admission",)):
        raw["plant"] = _tandem(draws)
        raw["workload"] = _synthetic(draws, rate_per_s=draws.number(1.0, 20.0))
    else:
        raw["plant"] = _cluster(draws)
        raw["workload"] = _workload(draws)
        raw["reconfigure"] = _reconfigure(draws)
    raw["admission"] = _door(draws, raw["workload"]["kind"])
    raw["telemetry"] = _telemetry(draws, raw["plant"]["kind"] == "cluster")
    raw["control"] = {"admission_period_s": 0.5, "batching_period_s": 0.5, "capacity_period_s": draws.number(2.0, 10.0),
                      "demand_period_s": 20.0, "retention_period_s": 5.0,
                      "allow_period_below_age": list(SLOTS)}  # fmt: skip
    if draws.chance(0.3):
        raw["drain_s"] = draws.number(1.0, 30.0)
    roles = [table["role"] for table in raw["plant"].get("configurations", {}).values()]
    if draws.chance(0.3) and "aggregated" not in roles:
        raw["ready"] = {"capacity_turns": draws.integer(1, 8)}
    if draws.chance(0.3):
        raw["clients"] = {"attempts": draws.integer(1, 4), "wait_s": draws.number(0.1, 3.0),
                          "jitter_ratio": draws.one_of([0.0, 1.0])}  # fmt: skip
        if draws.chance(0.5):
            raw["clients"]["budget_ratio"] = draws.number(0.0, 0.5)
    if draws.chance(0.3):
        raw["dispatch"] = {"routers": draws.integer(1, 3), "snapshot_s": draws.number(0.2, 2.0)}
    if draws.chance(0.3):
        raw["dispatch"] = raw.get("dispatch", {}) | {"quarantine_after": draws.integer(1, 3)}
    raw["classes"] = {"default": {"ttft_s": 2.0, "tpot_s": 0.1}}
    if draws.chance(0.3):
        raw["classes"]["batch"] = {"weight": 0.5, "priority": -1}
    raw["candidates"] = [_candidate(draws, raw["plant"]["kind"] == "cluster", "kv" in raw["plant"], law)]
    return raw


def _candidate(draws: Draws, cluster: bool, keeps: bool, law: tuple[str, Table] | None) -> Table:
    candidate: Table = {"name": "drawn"}
    slots: tuple[str, ...] = (
        ("capacity", *(slot for slot in SLOTS if slot != "capacity"), "routing") if cluster else ("admission",)
    )
    for slot in slots:
        if draws.chance(LAW_RATIO) and (slot != "retention" or keeps) and (slot != "demand" or "capacity" in candidate):
            kind, table = draws.one_of(list(examples(slot)))
            if kind != "hold":
                candidate[slot] = table.model_dump(exclude_unset=True, exclude_none=True, mode="json") | {"kind": kind}
                candidate[slot] |= {key: draws.integer(*FEW[key]) for key in FEW if key in candidate[slot]}
    if law is not None:
        candidate[law[0]] = law[1]
    return candidate


def _tandem(draws: Draws) -> Table:
    residence = {"shape": draws.one_of(["exponential", "fixed"]), "mean_s": draws.number(0.5, 5.0)}
    return {"kind": "tandem", "slots": draws.integer(1, 32), "dead_time_s": draws.number(0.0, 5.0),
            "residence": residence}  # fmt: skip


def _cluster(draws: Draws) -> Table:
    aggregated = draws.chance(0.5)
    serving = ["decode"] if aggregated else ["prefill", "decode"]
    memory = draws.integer(300, 4000) if draws.chance(0.4) else None
    roles = {"decode": "aggregated" if aggregated else "decode", "prefill": "fill", "spare": "idle"}
    configurations = {name: _configuration(draws, roles[name], memory) for name in (*serving, "spare")}
    sizes = {name: draws.integer(1, 4) for name in (*serving, "spare")}
    workers = sum(sizes.values())
    racks = draws.integer(1, 3)
    plant: Table = {
        "kind": "cluster",
        "configurations": configurations,
        "racks": [{"count": racks, "workers": -(-workers // racks), "uplink_bytes_per_s": draws.number(1e6, 1e9)}],
        "pools": [{"configuration": name, "workers": size} for name, size in sizes.items()],
        "faults": [_fault(draws, workers, racks) for _ in range(draws.integer(0, FAULTS_MOST))],
    }
    if draws.chance(0.3):
        plant["kv"] = {"bytes_per_token": 7e4, "nic_bytes_per_s": draws.number(1e7, 1e9)}
        if draws.chance(0.5):
            plant["kv"]["network"] = {"capacity_bytes": draws.number(1e10, 1e11)}
    return plant


def _configuration(draws: Draws, role: str, memory_tokens: int | None) -> Table:
    if role == "idle":
        return {"role": role}
    times = {"kind": "linear", "base_s": draws.number(0.005, 0.03), "per_sequence_s": draws.number(0.0, 1e-3),
             "per_kv_token_s": draws.number(0.0, 1e-6), "per_new_token_s": draws.number(1e-6, 1e-4)}  # fmt: skip
    table: Table = {"role": role, "times": times, "load_s": draws.number(0.0, 5.0),
                    "staging_turns": draws.integer(0, 2)}  # fmt: skip
    if draws.chance(0.3):
        table |= {"load_cv_ratio": 0.5, "fail_ratio": draws.number(0.1, 0.6), "fails_at_ratio": draws.number(0.1, 1.0)}
    if role != "fill":
        table["slots"] = draws.integer(1, 16)
        table["preemption"] = draws.one_of(["recompute", "swap"])
        table["readmission"] = draws.one_of(["waits", "at_once"])
    if memory_tokens is not None:
        table |= {"kv_capacity_tokens": memory_tokens, "headroom_tokens": draws.integer(0, 20)}
    if draws.chance(0.5):
        table["kv_bytes_per_token"] = 7e4
    return table


def _fault(draws: Draws, workers: int, racks: int) -> Table:
    fault: Table = {"at_s": draws.number(1.0, 40.0)}
    if draws.chance(0.9):
        fault["for_s"] = draws.number(0.1, 15.0)
    kind = draws.one_of(["lost", "lost", "slowed", "worsening", "flapping", "link_down", "poisoned"])
    if kind == "poisoned":
        fault |= {"share_ratio": draws.number(0.01, 0.1), "after_s": draws.number(0.0, 1.0), "back_s": 2.0}
    elif kind == "link_down":
        fault["rack"] = draws.integer(0, racks - 1)
    elif kind == "lost" and draws.chance(0.2):
        fault["workers"] = sorted({draws.integer(0, workers - 1) for _ in range(2)})
    else:
        fault["worker"] = draws.integer(0, workers - 1)
    if kind in ("slowed", "worsening", "flapping"):
        fault["factor_ratio"] = draws.number(0.1, 0.9)
    if kind in ("worsening", "flapping"):
        fault["for_s"] = draws.number(1.0, 15.0)
    if kind == "flapping":
        fault["period_s"] = draws.number(0.5, 5.0)
    return fault | {"kind": kind}


def _workload(draws: Draws) -> Table:
    kind = draws.one_of(["poisson", "poisson", "step", "saturated", "lanes", "sessions"])
    if kind == "lanes":
        conversations = {"kind": "generated", "preset": draws.one_of(["rag", "agentx_subagents"]), "sessions": 4}
        return {"kind": "lanes", "lanes": draws.integer(1, 8), "conversations": conversations}
    if kind == "sessions":
        conversations = {"kind": "generated", "preset": "rag", "sessions": 4}
        return {"kind": "sessions", "rate_per_s": draws.number(0.1, 3.0), "conversations": conversations}
    if kind == "step":
        steps = [{"at_s": at_s, "rate_per_s": draws.number(0.0, 15.0)} for at_s in (0.0, 10.0, 25.0, 40.0)]
        return _synthetic(draws, kind="step", steps=steps)
    if kind == "saturated":
        return _synthetic(draws, kind="saturated", waiting_turns=draws.integer(1, 30))
    return _synthetic(draws, rate_per_s=draws.number(0.2, 15.0))


def _synthetic(draws: Draws, kind: str = "poisson", **more: Any) -> Table:  # Any: numbers and lists of tables
    shapes = ["fixed", "exponential", "lognormal"]
    prompt = {"shape": draws.one_of(shapes), "mean_tokens": draws.integer(1, 200)}
    output = {"shape": draws.one_of(shapes), "mean_tokens": draws.integer(1, 120)}
    return {"kind": kind, **more, "prompt": prompt, "output": output}


def _reconfigure(draws: Draws) -> Table:
    table: Table = {"reserve": "spare", "drain": draws.one_of(["wait", "migrate", "retry"]),
                    "attempts": draws.integer(1, 2), "atomic": draws.chance(0.5)}  # fmt: skip
    if draws.chance(0.3):
        table["dwell_s"] = draws.number(1.0, 20.0)
    if draws.chance(0.3):
        table["max_pending_workers"] = 1
    return table


def _door(draws: Draws, workload: str) -> Table:
    table: Table = {"order": draws.one_of(["fifo", "priority", "edf", "weighted_fair"])}
    if draws.chance(0.3) or workload == "saturated":
        table["max_release_per_s"] = draws.number(1.0, 50.0)
    if draws.chance(0.3) and workload != "saturated":
        table["queue_limit_turns"] = draws.integer(1, 20)
    return table


def _telemetry(draws: Draws, cluster: bool) -> Table:
    faults = []
    if draws.chance(0.3):
        kind = draws.one_of(["frozen", "repeated", "empty"] if cluster else ["frozen", "repeated"])
        faults.append({"kind": kind, "at_s": draws.number(1.0, 40.0), "for_s": draws.number(1.0, 15.0)})
        if kind == "empty":
            faults[0]["configuration"] = "decode"
    if draws.chance(0.5):
        return {"faults": faults}
    table: Table = {"period_s": draws.number(0.1, 5.0), "faults": faults}
    if draws.chance(0.5):
        table["age_s"] = draws.number(0.1, 5.0)
    if draws.chance(0.5):
        table |= {"noise_ratio": draws.number(0.01, 0.5), "drop_ratio": draws.number(0.0, 0.9)}
    return table
