"""Faults of plant, telemetry and clients: what they do, that nothing is lost by them, and how recovery is counted."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scenarios.errors import UserError
from scenarios.run.execute import run
from scenarios.run.recovery import recovery
from scenarios.run.result import Run
from scenarios.schema.load import load, validate

SERVES = """
title = "t"
question = "q"
seed = 5
horizon_s = 40.0
warmup_s = 2.0
[plant]
kind = "cluster"
[plant.configurations.serve]
role = "aggregated"
slots = 4
times = { kind = "linear", base_s = 0.02, per_sequence_s = 0.0, per_kv_token_s = 0.0, per_new_token_s = 1e-5 }
[[plant.racks]]
count = 2
workers = 2
uplink_bytes_per_s = 1e9
[[plant.pools]]
configuration = "serve"
workers = 4
[workload]
kind = "poisson"
rate_per_s = 6.0
prompt = { shape = "fixed", mean_tokens = 50 }
output = { shape = "fixed", mean_tokens = 50 }
"""
HOLD = '[[candidates]]\nname = "hold"\n'


def played(tables: str) -> Run:
    done = run(validate(tomllib.loads(SERVES + tables), "case"))
    counts = done.summary["counts"]
    assert counts["arrived"] == sum(counts[end] for end in ("retired", "rejected", "failed", "in_flight"))
    return done


def fault(**keys: object) -> str:
    return "[[plant.faults]]\n" + "".join(f"{k} = {v!r}\n".replace("'", '"') for k, v in keys.items())


@pytest.mark.parametrize("target", [{"rack": 1}, {"workers": [2, 3]}], ids=["a rack", "a node"])
def test_all_workers_of_a_rack_or_node_are_lost_and_come_back(target: dict[str, object]) -> None:
    done = played(fault(kind="lost", at_s=10.0, for_s=5.0, **target) + HOLD)
    slots = done.signals.set_index("t_s")["slots"]
    assert slots.loc[10.5:14.5].unique().tolist() == [8]
    assert slots.iloc[-1] == 16
    assert done.summary["counts"]["failed"] == 0


def test_a_worsening_worker_slows_in_steps_and_a_flapping_one_to_and_fro() -> None:
    done = played(
        fault(kind="worsening", worker=0, at_s=10.0, for_s=8.0, factor_ratio=0.2)
        + fault(kind="flapping", worker=1, at_s=10.0, for_s=8.0, period_s=4.0, factor_ratio=0.1)
        + HOLD
    )
    slowed = [event for event in done.data.events if event["kind"] == "fact" and event["fact"] == "slowed"]
    flapping = [(e["at_s"], e["detail"]) for e in slowed if e["detail"] in ("x10", "x1") and e["at_s"] < 18.0]
    assert flapping[0][::-1] == ("x10", 10.0)
    assert [at_s for at_s, _ in flapping] == [10.0, 12.0, 14.0, 16.0]
    worsening = [event["detail"] for event in slowed if event["detail"] not in ("x1", "x10")]
    assert worsening[:8] == ["x1.5", "x2", "x2.5", "x3", "x3.5", "x4", "x4.5", "x5"]


@pytest.mark.parametrize(("quarantine", "bucket"), [(1, "quarantined"), (2, "quarantined"), (None, "worker_lost")])
def test_a_poisoned_turn_is_quarantined_after_so_many_losses(quarantine: int | None, bucket: str) -> None:
    tables = fault(kind="poisoned", share_ratio=0.02, at_s=5.0, for_s=20.0, after_s=0.1, back_s=1.0)
    done = played(tables + (f"[dispatch]\nquarantine_after = {quarantine}\n" if quarantine else "") + HOLD)
    assert done.summary["counts"]["failed"] > 0
    failed = set(done.turns["outcome"].astype(str)) - {"retired", "decoding", "filling", "waiting", "ready"}
    assert failed == {f"failed:{bucket}"}
    lost = sum(event["kind"] == "fact" and event["fact"] == "lost" for event in done.data.events)
    poisoned = done.summary["counts"]["failed"]
    assert lost <= (quarantine or 4) * poisoned, "each poisoned turn kills so many workers at most"


def reading_of(kind: str, more: str = "") -> np.ndarray:
    law = '[[candidates]]\nname = "x"\nadmission = { kind = "credit", cap_turns = 100 }\n'
    text = f'[[telemetry.faults]]\nkind = "{kind}"\nat_s = 10.0\nfor_s = 8.0\n{more}'
    signals = played("[telemetry]\nperiod_s = 0.5\n" + text + law).signals.set_index("t_s")
    return signals[["seen.admission.at_s", "seen.admission.arrived_total"]].loc[11.0:17.5].to_numpy()


def test_frozen_readings_grow_old_and_repeated_ones_look_fresh() -> None:
    frozen, repeated = reading_of("frozen"), reading_of("repeated")
    assert len(np.unique(frozen[:, 0])) == len(np.unique(frozen[:, 1])) == 1
    assert len(np.unique(repeated[:, 1])) == 1
    assert len(np.unique(repeated[:, 0])) > 10


CLIENTS = "[clients]\nattempts = 3\nwait_s = 0.5\n"
FULL = (
    '[admission]\nqueue_limit_turns = 1\n[[candidates]]\nname = "x"\nadmission = { kind = "credit", cap_turns = 2 }\n'
)


@pytest.mark.parametrize("more", ["", "jitter_ratio = 1.0\n", "budget_ratio = 0.2\n"])
def test_clients_come_back_as_often_as_their_attempts_and_budget_allow(more: str) -> None:
    refused, returned = played(FULL), played(CLIENTS + more + FULL)
    counts = returned.data.meta["notes"]["workload"]
    first = int((returned.turns["turn_id"] < 1 << 40).sum())
    assert first == len(refused.turns), "first attempts are the same, whatever comes back"
    again = len(returned.turns) - first
    assert 0 < again <= counts["turns_sent_again"] <= 3 * first
    if "budget" in more:
        assert counts["turns_sent_again"] <= 0.2 * first + 1


def test_a_load_that_fails_half_way_takes_half_the_time() -> None:
    flips = 'capacity = { kind = "step", configuration = "serve", low_workers = 3, high_workers = 4, hold_s = 4.0 }\n'
    control = '[control]\ncapacity_period_s = 1.0\n[reconfigure]\nreserve = "spare"\nattempts = 1\n'
    broken = SERVES.replace("slots = 4", "slots = 4\nload_s = 3.0\nfail_ratio = 0.9\nfails_at_ratio = 0.5")
    text = broken + '[plant.configurations.spare]\nrole = "idle"\n' + control + '[[candidates]]\nname = "x"\n' + flips
    done = run(validate(tomllib.loads(text), "case"))
    events = [e for e in done.data.events if e["kind"] == "reconfigure" and e["target"] == "serve"]
    loading = {e["worker"]: e["at_s"] for e in events if e["state"] == "loading"}
    failed = [e for e in events if e["state"] == "failed"]
    assert failed
    assert min(e["at_s"] - loading[e["worker"]] for e in failed) <= 1.5 + 1e-9


def test_recovery_is_the_settling_time_of_the_turns_inside() -> None:
    t = np.arange(0.0, 100.0)
    inside = np.where((t >= 40) & (t < 63), 50.0, 10.0)
    signals = pd.DataFrame({"t_s": t, "backlog_turns_mean": inside - 5.0, "in_flight_turns_mean": 5.0})
    figures = recovery(signals, [(40.0, 55.0)], 5.0, 100.0)
    assert figures is not None
    assert (figures["recovery_s"], figures["usual_turns"], figures["worst_turns"]) == (8.0, 10.0, 50.0)
    for_good = recovery(signals, [(40.0, math.inf)], 5.0, 100.0)
    assert for_good is not None
    assert for_good["recovery_s"] == 23.0
    cut = recovery(signals[signals["t_s"] < 60], [(40.0, 55.0)], 5.0, 60.0)
    assert cut is not None
    assert cut["recovery_s"] is None, "not back by the end"
    assert recovery(signals, [], 5.0, 100.0) is None


BROKEN = """
from orchestrator.messages import AdmissionCommand, AdmissionReading


class Broken:
    def __init__(self, cadence):
        self.cadence = cadence

    def act(self, y: AdmissionReading):
        {body}
"""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return 1 / (y.now_s - y.now_s)", "raised ZeroDivisionError"),
        ("return 5", "returned 5, not a AdmissionCommand"),
        ("return AdmissionCommand(release_per_s=float('nan'))", "returned NaN as release_per_s"),
        ("return AdmissionCommand(in_flight_cap_turns='many')", "cannot be carried out"),
    ],
)
def test_a_law_that_fails_ends_the_run_in_a_line_of_law_instant_and_reading(
    body: str, words: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN.format(body=body))
    law = f'admission = {{ kind = "file", file = "{tmp_path / "broken.py"}", law = "Broken" }}\n'
    with pytest.raises(UserError, match=f"at 0 s the admission law Broken .it read .*backlog_turns 0.*{words}"):
        played('[[candidates]]\nname = "x"\n' + law)


def test_a_lost_storage_server_takes_what_only_it_kept() -> None:
    scenario = load("storage_loss", ["horizon_s=130", "warmup_s=20", "plant.faults.0.at_s=80", "expect={}"])
    kv = run(scenario).summary["kv"]
    assert kv["evictions"]["server_lost"] > 0
    two = load(
        "storage_loss",
        ["horizon_s=130", "warmup_s=20", "plant.faults.0.at_s=80", "plant.kv.replicas=2", "expect={}"],
    )
    assert run(two).summary["kv"]["evictions"]["server_lost"] == 0
