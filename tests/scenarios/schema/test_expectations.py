"""What a scenario expects is held to the keys that a run's summary has, when the file is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from scenarios.compare.join import SHORT, value_at
from scenarios.errors import UserError
from scenarios.run.execute import run
from scenarios.schema import expect, summary
from scenarios.schema.checks.expected import names_in
from scenarios.schema.files import library
from scenarios.schema.load import load, override, validate

TANDEM = ("mild", ["horizon_s=30", "warmup_s=5"])
CLUSTER = ("kv_cliff", ["horizon_s=8", "warmup_s=2"])
POOLS = ("role_flips", ["horizon_s=20", "warmup_s=5"])
FAULTS = ("rack_loss", ["horizon_s=160", "warmup_s=50"])
LISTS = {"measured.dead_times_s", "measured.residences_s", "warnings", "trace.repairs", "window_s", "kv.flows_bytes"}


def leaves(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from leaves(inner, f"{before}{key}.")
        else:
            yield before + key, inner


def expecting(name: str, key: str, want: object) -> str:
    raw = load(name).model_dump(mode="json", exclude_none=True)
    raw["expect"] = {raw["candidates"][0]["name"]: {key: want}}
    with pytest.raises(UserError) as refused:
        validate(raw, f"{name}.toml")
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.fixture(scope="module")
def summaries() -> list[tuple[summary.Names, Mapping[str, Any]]]:
    pairs: list[tuple[summary.Names, Mapping[str, Any]]] = []
    for name, sets in (TANDEM, CLUSTER, POOLS, FAULTS):
        scenario = load(name, sets)
        names: summary.Names = names_in(scenario)
        pairs.append((names, run(scenario, scenario.candidates[0].name).summary))
    return pairs


def test_every_key_of_a_summary_may_be_expected_as_what_it_is(
    summaries: list[tuple[summary.Names, Mapping[str, Any]]],
) -> None:
    for names, summary_ in summaries:
        for path, value in leaves(summary_):
            if path in LISTS or path.endswith(".other_periods_s") or value is None:
                continue
            assert summary.among(path, summary.WORDS if isinstance(value, str) else summary.NUMBERS, names), path
            assert value_at(summary_, path) == value or value != value, path


def test_every_key_that_may_be_expected_is_found_in_some_summary(
    summaries: list[tuple[summary.Names, Mapping[str, Any]]],
) -> None:
    paths = [(names, path) for names, summary_ in summaries for path, _ in leaves(summary_)]
    unseen = [
        key
        for key in (*summary.WORDS, *summary.NUMBERS)
        if not any(summary.among(path, [key], names) for names, path in paths)
    ]
    # Only a mixture has parts, only `compare` knows theory's word, and these tiers move nothing over named links.
    assert [key for key in unseen if not key.startswith(("trace.parts.", "theory."))] == [
        "kv.moved_bytes.<name>",
        "kv.link_bytes.<name>",
    ]


def test_the_short_keys_are_those_of_the_room_they_name() -> None:
    assert set(expect.SHORT_KEYS) == set(SHORT)


@pytest.mark.parametrize("name", sorted(library()))
def test_what_ships_expects_only_what_runs_tell(name: str) -> None:
    load(name)


@pytest.mark.parametrize(
    ("name", "key", "want", "message"),
    [
        ("mild", "flow.decode_utilisation_ratio", {"at_least": 0.1}, "(did you mean `flow.decode_utilization_ratio`?)"),
        ("mild", "by_class.defalt.goodput.ratio", {"at_least": 1}, "(did you mean `by_class.default.goodput.ratio`?)"),
        ("mild", "verdict.backlog.verdict", "steady", "(did you mean `verdict.backlog_turns.verdict`?)"),
        ("mild", "xyzzy", {"at_least": 1}, "expect.retirement_gate.xyzzy: no key of a run's summary"),
        ("mild", "flow", {"at_least": 1}, "flow: no key of a run's summary"),
        ("mild", "verdict", {"at_least": 1}, "is a word, not a number"),
        ("mild", "period_s", "long", "is a number; write { value = ..., rel = ... }"),
        ("mild", "kv.hit_token_ratio", {"at_least": 1}, "it needs a plant of kind cluster with a table plant.kv"),
        ("mild", "stranded.fill_ratio", {"at_least": 1}, "the tandem plant has no workers"),
        ("mild", "trace.requests", {"at_least": 1}, "plays no conversations"),
        ("role_flips", "stranded.by_pool.fil.compute_ratio", {"at_least": 1}, "stranded.by_pool.fill.compute_ratio"),
    ],
)
def test_an_expectation_that_no_run_could_meet_is_refused_at_load(
    name: str, key: str, want: object, message: str
) -> None:
    assert message in expecting(name, key, want)
    assert expecting(name, key, want).startswith(f"{name}.toml: expect.")


def test_a_signal_with_dots_in_its_name_can_be_expected() -> None:
    key = "verdict.command.admission.gate_open.verdict"
    raw = load("mild").model_dump(mode="json", exclude_none=True)
    override(raw, "expect", {"retirement_gate": {key: "limit_cycle"}})
    assert validate(raw, "mild.toml").expect["retirement_gate"] == {key: "limit_cycle"}
    assert value_at({"verdict": {"command.admission.gate_open": {"verdict": "limit_cycle"}}}, key) == "limit_cycle"
