"""Step times fitted to traces: the numbers that made a run come out of its record again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scenarios.errors import UserError
from scenarios.plan.fit import Fitted, fit, read_requests, write_table
from scenarios.run import execute
from scenarios.schema.load import load

TRUE = {"base_s": 8e-3, "per_sequence_s": 2e-4, "per_kv_token_s": 4e-8, "per_new_token_s": 1e-5}
TIMES = "{ kind = 'linear', base_s = 8e-3, per_sequence_s = 2e-4, per_kv_token_s = 4e-8, per_new_token_s = 1e-5 }"
SCENARIO = """
title = "made"
question = "What were the seconds?"
seed = 3
horizon_s = {horizon_s}
warmup_s = 10.0
workload.kind = "poisson"
workload.rate_per_s = {rate}
workload.prompt = {{ shape = "uniform", mean_tokens = 2048, high_tokens = 3900 }}
workload.output = {{ shape = "uniform", mean_tokens = 100, high_tokens = 190 }}
candidates = [{{ name = "hold" }}]
[plant]
kind = "cluster"
racks = [{{ workers = 2, uplink_bytes_per_s = 5e10 }}]
{pools}
"""
APART = """pools = [{{ configuration = "fill", workers = 1 }}, {{ configuration = "decode", workers = 1 }}]
configurations.fill = {{ role = "fill", times = {times} }}
configurations.decode = {{ role = "decode", slots = 64, times = {times} }}
"""
TOGETHER = """pools = [{{ configuration = "serve", workers = 2 }}]
configurations.serve = {{ role = "aggregated", slots = 64, times = {times} }}
"""


def fitted(folder: Path, pools: str, rate: float, horizon_s: float = 120.0) -> Fitted:
    text = SCENARIO.format(pools=pools.format(times=TIMES), rate=rate, horizon_s=horizon_s)
    (folder / "made.toml").write_text(text)
    execute.run(load(folder / "made.toml"), out=folder / "run")
    return fit(read_requests(folder / "run", {}))


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Fitted]:
    folder = tmp_path_factory.mktemp("apart")
    return folder, fitted(folder, APART, 8.0, 90.0)


def test_the_numbers_of_a_decode_worker_come_out_of_its_record(apart: tuple[Path, Fitted]) -> None:
    _, got = apart
    for name in ("base_s", "per_sequence_s", "per_kv_token_s"):
        number = got.numbers[name]
        # Batch and KV tokens rise together, so the intervals say how well they are told apart.
        assert 0.95 * number.low <= TRUE[name] <= 1.05 * number.high
    step_s = sum(got.numbers[name].value * x for name, x in (("base_s", 1), ("per_sequence_s", 16),
                                                             ("per_kv_token_s", 16 * 2150)))  # fmt: skip
    assert step_s == pytest.approx(8e-3 + 16 * 2e-4 + 16 * 2150 * 4e-8, rel=0.01)
    assert got.numbers["per_new_token_s"].value == 0.0
    assert got.median_error_ratio < 0.01
    assert got.first_per_new_token_s is not None
    assert got.first_per_new_token_s.value == pytest.approx(TRUE["per_new_token_s"], rel=0.01)


def test_a_worker_that_fills_and_decodes_shows_what_a_new_token_costs(tmp_path: Path) -> None:
    got = fitted(tmp_path, TOGETHER, 8.0, 60.0)
    assert got.workers == 2
    assert got.numbers["per_new_token_s"].value == pytest.approx(TRUE["per_new_token_s"], rel=0.15)
    assert got.numbers["base_s"].value == pytest.approx(TRUE["base_s"], rel=0.1)
    assert got.times().startswith('times = { kind = "linear", base_s = 0.00')


def test_the_table_that_it_writes_serves_as_the_plant_that_made_the_trace(apart: tuple[Path, Fitted]) -> None:
    folder, got = apart
    assert write_table(got, folder / "steps.csv") > 50
    table = "{ kind = 'table', file = 'steps.csv', outside = 'extrapolate' }"
    text = SCENARIO.format(pools=APART.format(times=table), rate=8.0, horizon_s=60.0)
    (folder / "again.toml").write_text(text)
    again = execute.run(load(folder / "again.toml")).summary
    true = execute.run(load(folder / "made.toml", ["horizon_s=60"])).summary
    assert again["latency"]["tpot_s"]["p50"] == pytest.approx(true["latency"]["tpot_s"]["p50"], rel=0.05)


def trace(rows: int = 200, **columns: object) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    arrived = np.cumsum(rng.exponential(0.5, rows))
    output = rng.integers(10, 50, rows)
    table = {"ts": arrived * 1e3, "prompt_len": rng.integers(100, 500, rows), "gen_len": output,
             "first_ms": 50.0, "done": arrived * 1e3 + 50.0 + 20.0 * (output - 1), **columns}  # fmt: skip
    return pd.DataFrame(table)


NAMED = {"arrived": "ts", "prompt": "prompt_len", "output": "gen_len", "ttft": "first_ms", "end": "done"}


def test_columns_and_units_of_one_s_own_are_read(tmp_path: Path) -> None:
    trace().to_csv(tmp_path / "t.csv", index=False)
    got = fit(read_requests(tmp_path / "t.csv", NAMED, 1e-3))
    assert got.numbers["base_s"].value == pytest.approx(0.020, rel=0.02)
    assert got.workers == 1


@pytest.mark.parametrize(
    ("columns", "rows", "words"),
    [
        ({"ttft": "first_ms"}, 200, "no column for `end` (ended_s, end_s, ended, end); name it: --columns end=NAME"),
        ({"finish": "done"}, 200, "--columns finish: is unknown; known: arrived, prompt"),
        ({"end": "finished"}, 200, "column finished is missing; there are ts, prompt_len"),
        ({k: v for k, v in NAMED.items() if k != "ttft"}, 200, "no column for the first token (first or ttft)"),
        (NAMED, 20, "20 of 20 requests have a first token, an end and two tokens of output; at least 30 would do"),
    ],
)
def test_a_trace_that_cannot_be_fitted_says_what_it_lacks(
    tmp_path: Path, columns: dict[str, str], rows: int, words: str
) -> None:
    trace(rows).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UserError) as caught:
        read_requests(tmp_path / "t.csv", columns)
    assert words in str(caught.value)


def test_an_absent_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.csv: cannot be read: No such file"):
        read_requests(tmp_path / "nowhere.csv", {})
