"""Runs that once broke conservation: every turn that can be served is, whatever is refused, lost, raised or drained."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from scenarios.run.execute import run
from scenarios.run.result import Run
from scenarios.schema.load import validate

AGGREGATED = """
[plant]
kind = "cluster"
[plant.configurations.serve]
role = "aggregated"
slots = 4
times = { kind = "linear", base_s = 0.02, per_sequence_s = 0.0, per_kv_token_s = 0.0, per_new_token_s = 1e-5 }
[plant.configurations.spare]
role = "idle"
[[plant.racks]]
workers = 6
uplink_bytes_per_s = 1e9
"""
POISSON = """
[workload]
kind = "poisson"
rate_per_s = 3.0
prompt = { shape = "fixed", mean_tokens = 50 }
output = { shape = "exponential", mean_tokens = 40 }
"""
LANES = """
[workload]
kind = "lanes"
lanes = 3
conversations = { kind = "generated", preset = "rag", sessions = 6 }
"""
LAW = '[[candidates]]\nname = "law"\n'


def pools(serve: int, spare: int = 0) -> str:
    parts = (("serve", serve), ("spare", spare))
    return "".join(f'[[plant.pools]]\nconfiguration = "{name}"\nworkers = {n}\n' for name, n in parts if n)


def played(tables: str, horizon_s: float = 40.0, head: str = "") -> Run:
    text = f'title = "t"\nquestion = "q"\nseed = 4\nhorizon_s = {horizon_s}\nwarmup_s = 2.0\n{head}\n{tables}'
    return run(validate(tomllib.loads(text), "case"))


@pytest.mark.parametrize(
    ("head", "tables"),
    [
        ("drain_s = 4.0", '[[candidates]]\nname = "hold"\n'),
        ("", f'[admission]\nqueue_limit_turns = 1\n{LAW}admission = {{ kind = "credit", cap_turns = 1 }}\n'),
        ("", f'{LAW}admission = {{ kind = "early_reject", load = "current", limit_ratio = 0.5 }}\n'),
    ],
    ids=["drain", "queue limit", "shedding law"],
)
def test_a_lane_whose_turns_are_refused_waits_before_it_goes_on(head: str, tables: str) -> None:
    counts = played(LANES + AGGREGATED + pools(1) + tables, 10.0, head).summary["counts"]
    assert counts["rejected"] > 0
    assert counts["rejected"] <= 3 * (10.0 + 4.0) + 3, "each lane waits a second after a refusal"
    assert counts["arrived"] == counts["retired"] + counts["rejected"] + counts["failed"] + counts["in_flight"]


def test_lanes_of_prompts_that_fit_nowhere_end_with_the_horizon() -> None:
    small = AGGREGATED.replace("slots = 4", "slots = 4\nkv_capacity_tokens = 8")
    counts = played(LANES + small + pools(1) + '[[candidates]]\nname = "hold"\n', 10.0).summary["counts"]
    assert 0 < counts["rejected"] == counts["arrived"] <= 33


LOSS = '[[plant.faults]]\nkind = "lost"\nworker = {worker}\nat_s = 20.0\nfor_s = 0.5\n'


@pytest.mark.parametrize("law", ["", 'admission = { kind = "credit", cap_turns = 100000 }\n'], ids=["no law", "a law"])
@pytest.mark.parametrize("lost", [(0,), (0, 1)], ids=["one of two", "both"])
def test_workers_that_come_back_serve_again_whatever_laws_there_are(law: str, lost: tuple[int, ...]) -> None:
    faults = "".join(LOSS.format(worker=worker) for worker in lost)
    done = played(POISSON + AGGREGATED + pools(2) + faults + '[[candidates]]\nname = "x"\n' + law)
    assert done.summary["counts"]["in_flight"] <= 12
    assert done.signals["slots"].iloc[-1] == 8
    joined = [e for e in done.data.events if e["kind"] == "fact" and e["fact"] == "joined" and e["at_s"] > 1.0]
    assert [e["at_s"] for e in joined] == [20.5] * len(lost)


def test_the_share_of_slots_in_use_is_one_of_the_slots_that_exist() -> None:
    """Both workers are gone for longer than a bin, and come and go within bins."""
    faults = "".join(LOSS.format(worker=worker).replace("0.5", f"0.{3 + worker}3") for worker in (0, 1))
    tables = POISSON.replace("3.0", "12.0") + AGGREGATED + pools(2) + faults + '[[candidates]]\nname = "hold"\n'
    done = played(tables + "[record]\nsignal_bin_s = 0.25\n")
    share = done.signals["decode_occupancy_ratio_mean"].to_numpy()
    assert np.isnan(share).sum() == 1, "the bin in which there was no slot"
    for column in ("mean", "min", "max"):
        values = done.signals[f"decode_occupancy_ratio_{column}"].to_numpy()
        assert ((values >= 0.0) & (values <= 1.0))[np.isfinite(values)].all()
    assert 0.5 < done.summary["flow"]["decode_utilization_ratio"] <= 1.0


def test_a_worker_is_never_counted_twice_however_seldom_samples_are_taken() -> None:
    flips = 'capacity = { kind = "step", configuration = "serve", low_workers = 1, high_workers = 2, hold_s = 1.0 }\n'
    control = '[telemetry]\nperiod_s = 10.0\n[control]\ncapacity_period_s = 1.0\n[reconfigure]\nreserve = "spare"\n'
    done = played(POISSON + AGGREGATED + pools(1, 1) + control + '[[candidates]]\nname = "to_and_fro"\n' + flips)
    assert done.signals["slots"].max() == 8
    assert done.signals["workers_active_max"].max() == 2
    assert sum(done.data.meta["notes"]["worker_seconds"].values()) == pytest.approx(2 * 40.0)


def test_a_drain_of_recorded_times_has_its_turns_served_elsewhere() -> None:
    recorded = """
[plant]
kind = "cluster"
racks = [{ workers = 2, uplink_bytes_per_s = 1e7 }]
pools = [{ configuration = "serve", workers = 2 }]
faults = [{ kind = "lost", at_s = 5.0, worker = 0 }]
[plant.configurations.serve]
role = "aggregated"
times = { kind = "recorded" }
[plant.kv]
bytes_per_token = 7e4
nic_bytes_per_s = 1e8
"""
    counts = played(LANES + recorded + '[[candidates]]\nname = "hold"\n', 30.0).summary["counts"]
    assert counts["failed"] == 0
    assert counts["retired"] > 2


def test_no_slot_is_recorded_beyond_those_of_the_plant() -> None:
    law = 'batching = { kind = "aimd", most_turns = 64 }\n'
    done = played(POISSON + AGGREGATED + pools(2) + '[[candidates]]\nname = "most_64"\n' + law)
    assert done.signals["slots"].max() == 8


def test_a_scaler_counts_the_turns_in_line_for_a_worker() -> None:
    """4 slots of 0.8 s each serve 5 turns a second; 3 a second need one worker, 18 need four, of 6 turns each."""
    law = 'capacity = { kind = "hpa", configuration = "serve", measure = "turns", target = 6.0, most_workers = 5 }\n'
    control = '[control]\ncapacity_period_s = 5.0\n[reconfigure]\nreserve = "spare"\n'
    busy = POISSON.replace("3.0", "18.0")
    done = played(busy + AGGREGATED + pools(1, 5) + control + '[[candidates]]\nname = "open_door"\n' + law, 60.0)
    slots = done.signals.set_index("t_s")["slots"]
    assert slots.loc[15.0:].min() >= 12, "within three ticks"
    assert done.summary["counts"]["in_flight"] < 40


CAP_UP = '''
"""A cap of 1 for ten seconds, then 4."""
from orchestrator.messages import BatchCommand


class CapUp:
    def __init__(self, cadence):
        self.cadence = cadence

    def act(self, y):
        return BatchCommand(batch_cap_turns=1 if y.now_s < 10.0 else 4)
'''
DECODES = """
[plant.configurations.fill]
role = "fill"
staging_turns = 50
times = { kind = "linear", base_s = 0.001, per_sequence_s = 0.0, per_kv_token_s = 0.0, per_new_token_s = 1e-6 }
[[plant.pools]]
configuration = "fill"
workers = 1
"""


@pytest.mark.parametrize("role", ["aggregated", "decode"])
def test_a_raised_batch_cap_serves_the_line_at_the_next_step(role: str, tmp_path: Path) -> None:
    (tmp_path / "cap_up.py").write_text(CAP_UP)
    plant = AGGREGATED.replace("aggregated", role) + pools(2) + (DECODES if role == "decode" else "")
    waiting = '[workload]\nkind = "saturated"\nwaiting_turns = 40\noutput = { mean_tokens = 3000 }\n'
    law = f'batching = {{ kind = "file", file = "{tmp_path / "cap_up.py"}", law = "CapUp" }}\n'
    door = '[admission]\nmax_release_per_s = 1000.0\n[[candidates]]\nname = "cap_up"\n'
    done = played(waiting + plant + door + 'admission = { kind = "credit", cap_turns = 40 }\n' + law, 14.0)
    decoding = done.signals.set_index("t_s")["decoding_turns_mean"]
    assert decoding.loc[5.0:9.0].max() == 2
    assert decoding.loc[11.0:].min() == 8
