"""The command line from outside: what it prints and what it leaves on disk."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from scenarios.catalogue.verdict import Word
from tests.scenarios.cli.shell import BASE, Shell


def test_the_json_of_a_run_has_the_stated_shape(shell: Shell) -> None:
    answer = shell.json("run", "s.toml", "--candidate", "idle")
    keys = {
        *("candidate", "verdict", "headline", "flow", "latency", "goodput", "gpu_hours", "by_class", "counts", "trace"),
        *("window_s", "cpu_s_by_part", "turns_per_cpu_s", "peak_rss_mb", "ended", "scenario", "seed"),
    }
    assert keys <= set(answer)
    for verdict in answer["verdict"].values():
        assert {"verdict", "period_s", "amplitude_ratio", "damping_ratio", "p_value", "cost"} <= set(verdict)
        assert verdict["verdict"] in get_args(Word)
    assert "decode_occupancy_ratio" in answer["verdict"]
    assert {"decode_utilization_ratio", "starved_ratio", "fed"} <= set(answer["flow"])
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        assert {"p50", "p90", "p99"} == set(answer["latency"][name])
    assert {"ratio", "turns_per_s"} <= set(answer["goodput"])
    counts = answer["counts"]
    assert {"arrived", "retired", "rejected", "failed", "preempted", "in_flight"} <= set(counts)
    assert counts["arrived"] == counts["retired"] + counts["rejected"] + counts["failed"] + counts["in_flight"]
    assert answer["trace"] is None
    assert answer["window_s"] == [10.0, 60.0]
    assert answer["ended"] == "horizon"
    assert answer["gpu_hours"] == pytest.approx(60.0 / 3600.0)
    assert answer["turns_per_cpu_s"] == pytest.approx(counts["retired"] / answer["cpu_s_by_part"]["span"])
    assert answer["by_class"]["chat"]["counts"] == counts
    assert list(shell.folder.iterdir()) == [shell.folder / "s.toml"], "--json writes nothing"


def test_without_a_candidate_the_first_one_runs_and_it_says_so(shell: Shell) -> None:
    code, out, err = shell("run", "s.toml")
    assert code == 0
    assert "candidate gate, the first; others: idle" in err
    assert "runs/s-gate" in out
    assert sorted(path.name for path in (shell.folder / "runs" / "s-gate").iterdir()) == [
        *("curves.parquet", "events.jsonl.zst", "manifest.json", "scenario.toml"),
        *("signals.parquet", "turns.parquet", "verdict.json"),
    ]
    code, out, _ = shell("run", "s.toml", "--candidate", "gate")
    assert "runs/s-gate-2" in out


def test_a_stored_scenario_runs_again_to_the_same_end(shell: Shell) -> None:
    first = shell.json("run", "s.toml", "--out", "a", "--set", "plant.slots=9", "--seed", "7")
    again = shell.json("run", "a/scenario.toml", "--candidate", "gate", "--seed", "7")
    assert again["counts"] == first["counts"]
    assert "slots = 9" in (shell.folder / "a" / "scenario.toml").read_text(encoding="utf-8")


def test_an_override_reaches_a_candidates_law(shell: Shell) -> None:
    path = "candidates.gate.admission"
    narrow = shell.json("run", "s.toml", "--set", f"{path}.close_at_ratio=0.3", "--set", f"{path}.open_at_ratio=0.05")
    assert narrow["flow"]["backlog_turns"] > 5 * shell.json("run", "s.toml")["flow"]["backlog_turns"] + 1


def test_a_run_on_the_scaled_clock_ends_as_on_the_virtual_one(shell: Shell) -> None:
    virtual = shell.json("run", "s.toml", "--candidate", "idle")["counts"]
    real = shell.json("run", "s.toml", "--candidate", "idle", "--rate", "200")["counts"]
    assert real["arrived"] == pytest.approx(virtual["arrived"], rel=0.05)
    assert real["retired"] > 0.9 * virtual["retired"]


def test_a_run_that_retires_nothing_exits_with_one_and_says_why(shell: Shell) -> None:
    code, _, err = shell("run", "s.toml", "--json", "--set", "plant.dead_time_s=100")
    assert code == 1
    assert re.search(r"gate: no turn was retired: \d+ arrived \(\d+ in_flight\); the run ended: horizon", err)


def test_the_json_of_a_comparison_has_the_stated_shape(shell: Shell) -> None:
    answer = shell.json("compare", "s.toml", "--seeds", "2", "--jobs", "1")
    assert answer["seeds"] == [1, 2]
    assert set(answer["candidates"]) == {"gate", "idle"}
    gate, idle = answer["candidates"]["gate"], answer["candidates"]["idle"]
    used = idle["flow"]["decode_utilization_ratio"]
    assert set(used) == {"mean", "ci95"}
    assert used["ci95"][0] <= used["mean"] <= used["ci95"][1]
    word = idle["verdict"]["decode_occupancy_ratio"]["verdict"]
    assert set(word) == {"mode", "counts"}
    assert sum(word["counts"].values()) == 2
    assert gate["difference"] == {}
    assert set(idle["difference"]["flow.decode_utilization_ratio"]) == {"mean", "ci95"}
    (check,) = answer["expect"]
    assert {"key", "want", "got", "ok"} <= set(check)
    assert gate["expect"] == [{k: check[k] for k in ("key", "want", "got", "ok")}]
    assert answer["ok"] is True
    assert not (shell.folder / "runs").exists()


def test_an_expectation_that_fails_is_shown_and_exits_with_one(shell: Shell) -> None:
    code, out, _ = shell("compare", "s.toml", "--jobs", "1", "--set", "expect.gate.verdict=limit_cycle")
    assert code == 1
    assert "expectations: 0 of 1 hold" in out
    assert "gate: verdict should be limit_cycle, is steady" in out
    assert (shell.folder / "runs" / "s" / "report.html").exists()


def test_only_the_candidates_named_are_compared(shell: Shell) -> None:
    answer = shell.json("compare", "s.toml", "--candidate", "idle", "--jobs", "1")
    assert list(answer["candidates"]) == ["idle"]
    code, _, refused = shell("compare", "s.toml", "--candidate", "idel")
    assert code == 2
    assert "did you mean `idle`" in refused


@pytest.mark.slow
def test_processes_find_what_one_process_finds(shell: Shell) -> None:
    def plain(answer: Any) -> Any:
        for candidate in answer["candidates"].values():
            for key in ("cpu_s_by_part", "turns_per_cpu_s", "peak_rss_mb"):
                candidate.pop(key)
        return answer

    serial, two = (plain(shell.json("compare", "s.toml", "--jobs", jobs)) for jobs in ("1", "2"))
    assert serial == two


def test_list_names_every_shipped_scenario_with_its_question(shell: Shell) -> None:
    answer = shell.json("list")
    assert {"full_empty_reference", "mild", "echo", "open_loop_null"} <= set(answer)
    assert all(entry["question"].endswith("?") and entry["candidates"] for entry in answer.values())
    code, out, _ = shell("list")
    assert code == 0
    assert "full_empty_reference" in out


def test_a_report_is_written_beside_the_runs_it_is_about(shell: Shell) -> None:
    shell("run", "s.toml", "--candidate", "gate", "--out", "a")
    code, out, _ = shell("report", "a")
    assert code == 0
    assert "a/report.html" in out
    assert (shell.folder / "a" / "report.html").stat().st_size > 10_000


def test_a_fluid_run_writes_the_same_columns_and_says_what_has_no_fluid_form(shell: Shell) -> None:
    text = BASE.replace('kind = "poisson"\nrate_per_s = 5.0', 'kind = "saturated"\nwaiting_turns = 30')
    shell.write(text.replace('"tandem"', '"fluid"'))
    answer = shell.json("run", "s.toml", "--candidate", "gate")
    assert answer["counts"]["retired"] > 100
    assert answer["verdict"]["decode_occupancy_ratio"]["verdict"] in get_args(Word)
    shell.write(text.replace('"tandem"', '"fluid"').replace("mean_s = 2.0", 'shape = "lognormal", mean_s = 2.0'))
    code, _, err = shell("run", "s.toml", "--candidate", "gate", "--json")
    assert (code, err.count("\n")) == (2, 1)
    assert "lognormal residence has no fluid form" in err
