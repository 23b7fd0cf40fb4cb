"""`steadyflow plan` as a user meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from scenarios.cli import plan
from scenarios.errors import UserError

main = typer.Typer()
main.add_typer(plan.app, name="plan")


@main.command()
def other() -> None:
    """Stand beside `plan`, as the other commands do."""


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["plan", *words])


def refusal(*words: str) -> str:
    result = run(*words)
    assert isinstance(result.exception, UserError)
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_the_frontier_as_json() -> None:
    result = run("--model", "kimi-k3", "--hardware", "gb200-nvl72", "--gpus", "16..64", "--regime", "decode",
                 "--context", "32768", "--json")  # fmt: skip
    assert result.exit_code == 0, result.output
    message = json.loads(result.output)
    assert message["evaluated"] > 1000
    assert {"placement", "gpus", "tpot_s", "tokens_per_s_per_gpu", "energy_j_per_query", "hbm_bytes_per_gpu"} <= set(
        message["frontier"][0]
    )


def test_the_table_shows_every_column_and_what_was_refused() -> None:
    result = run("--model", "kimi-k3", "--gpus", "16", "--gpu-hour-price", "3")
    assert result.exit_code == 0
    assert "pp2tp8dp1ep8" in result.output
    assert "per Mtok" in result.output
    assert "placements refused:" in result.output


@pytest.mark.slow
def test_several_machines_and_all_regimes_make_one_page(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = run("--model", "kimi-k3", "--hardware", "gb200-nvl72,b300", "--gpus", "16", "--regime", "all",
                 "--max-pp", "4", "--out", str(out))  # fmt: skip
    assert result.exit_code == 0, result.output
    html = out.read_text(encoding="utf-8")
    for name in ("latency", "energy", "memory", "network"):
        assert f'id="plan-{name}"' in html
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", html)
    many = json.loads(run("--model", "kimi-k3", "--gpus", "16", "--regime", "all", "--max-pp", "4", "--json").output)
    assert [f["regime"] for f in many["frontiers"]] == ["decode", "midfill", "prefill"]


def test_a_layer_taken_apart_accounts_for_all_of_its_time(tmp_path: Path) -> None:
    message = json.loads(run("--model", "kimi-k3", "--explain", "pp2tp8dp1ep8", "--json").output)
    assert sum(s["share_ratio"] for s in message["operations"]) == pytest.approx(1.0)
    assert message["memory_bytes"]["expert weights"] > 50e9
    out = tmp_path / "layer.html"
    assert run("--model", "kimi-k3", "--explain", "dp64", "--out", str(out)).exit_code == 0
    assert 'id="plan-layer"' in out.read_text(encoding="utf-8")


def test_the_views_print_and_draw(tmp_path: Path) -> None:
    for word, div in (("memory", "plan-value"), ("regimes", "plan-sharing")):
        out = tmp_path / f"{word}.html"
        assert run(word, "--out", str(out)).exit_code == 0
        assert f'id="{div}"' in out.read_text(encoding="utf-8")
        assert json.loads(run(word, "--json").output)["model"] == "kimi-k3"


def test_value_rises_steeply_once_the_working_set_fits_and_then_flattens() -> None:
    rows = json.loads(run("memory", "--json").output)["rows"]
    middle = sorted({r["hbm_bytes_per_s"] for r in rows})[1]
    curve = [r["value_per_gpu_hour"] for r in rows if r["hbm_bytes_per_s"] == middle]
    assert curve[0] == 0.0
    assert curve == sorted(curve)
    assert curve[-1] == curve[-6]
    faster = [r["value_per_gpu_hour"] for r in rows if r["hbm_bytes_per_s"] == 2 * middle]
    assert faster[-1] > 1.5 * curve[-1]  # bandwidth lifts the ceiling


def test_faster_memory_helps_decode_and_hardly_midfill() -> None:
    message = json.loads(run("regimes", "--context", "500000", "--json").output)["faster_memory"]
    assert message[-1]["decode_gain_ratio"] > 2
    assert message[-1]["midfill_gain_ratio"] < 1.2


@pytest.mark.slow
def test_the_tables_of_models_and_rows_print() -> None:
    assert "glm-5" in run("models").output
    assert json.loads(run("validate", "--json").output)["n"] >= 90
    assert json.loads(run("models", "--json").output)[0]["config_source"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "kimi-k33"), "model `kimi-k33` is unknown (did you mean `kimi-k3`?)"),
        (("--model", "kimi-k3", "--hardware", "gb300"), "hardware `gb300` is unknown"),
        (("--model", "kimi-k3", "--engine", "vllm"), "engine `vllm` is unknown (did you mean"),
        (("--model", "kimi-k3", "--gpus", "64..16"), "--gpus 64..16: a range from 1 to 1024 in rising order"),
        (("--model", "kimi-k3", "--gpus", "many"), "--gpus many: write a number such as 32 or a range"),
        (("--model", "kimi-k3", "--regime", "decoding"), "--regime decoding is unknown (did you mean `decode`?)"),
        (("--model", "kimi-k3", "--context", "2000000"), "positions exceed kimi-k3's limit of 1048576"),
        (("--model", "kimi-k3", "--context", "0"), "--context 0: at least 1 would do"),
        (("--model", "kimi-k3", "--explain", "tp7"), "tp=7 does not divide MLA's 96 heads; fits:"),
        (("--model", "kimi-k3", "--explain", "tp8"), "expert weights overflow gb200-nvl72's 192 GB"),
        (("--model", "kimi-k3", "--hardware", "h100", "--gpus", "8"), "nothing fits: kimi-k3 on h100, decode:"),
        (("--config", "nowhere.json"), "--config nowhere.json: nowhere.json: No such file"),
        ((), "--model is missing; known: deepseek-v3"),
        (("memory", "--placement", "pp1tp5"), "tp=5 does not divide"),
        (("regimes", "--context", "9999999"), "kimi-k3 takes 1 to 1048576 positions"),
    ],
)
def test_mistakes_are_one_line_that_says_what_would_do(words: tuple[str, ...], message: str) -> None:
    assert message in refusal(*words)


def test_formats_and_the_hot_ratio_are_options_and_names_are_read_in_any_case() -> None:
    words = ("--model", "DeepSeek-V3", "--hardware", "B200", "--gpus", "8", "--max-pp", "1", "--json")
    plain, narrow, hot = (
        json.loads(run(*words, *more).output)["frontier"]
        for more in ((), ("--precision", "nvfp4", "--kv-format", "fp8"), ("--hot-ratio", "2"))
    )
    assert narrow[0]["tpot_s"] < plain[0]["tpot_s"]
    assert narrow[0]["hbm_bytes_per_gpu"] < 0.7 * plain[0]["hbm_bytes_per_gpu"]
    assert hot[-1]["tokens_per_s_per_gpu"] < plain[-1]["tokens_per_s_per_gpu"]
    assert "precision `fp9` is unknown (did you mean `fp8`?)" in refusal("--model", "kimi-k3", "--precision", "fp9")


def test_the_table_says_what_it_leaves_out() -> None:
    output = run("--model", "deepseek-v3", "--hardware", "b200", "--gpus", "8").output
    assert "batch/rank: sequences per data-parallel rank and micro-batch" in output
    number = int(re.findall(r"(\d+) on the frontier", output)[0])
    shown = re.findall(r"(\d+) of them shown", output)
    assert output.count("│ pp") == (int(shown[0]) if shown else number)
