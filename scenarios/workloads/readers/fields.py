"""Validate single fields of a JSON row; errors name the field, its place and the expected value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scenarios.workloads.blocks import Run, before_repeat, head, runs_of
from scenarios.workloads.repairs import Repairs


def integer(row: Mapping[str, Any], key: str, at: str, repairs: Repairs, least: int) -> int:
    """Return a required integer that is at least `least` (0 or 1)."""
    value = row.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        what = "missing" if value is None else f"{value!r}"
        raise repairs.rejection(f"{key} missing", f"{at}: {key}", f"{what}; an integer number of tokens was expected")
    if value < least:
        kind = f"{key} negative" if value < 0 else f"{key} zero"
        raise repairs.rejection(kind, f"{at}: {key}", f"{value}; at least {least} was expected")
    return value


def output(row: Mapping[str, Any], key: str, at: str, repairs: Repairs) -> int:
    """Return an output length: 0 is a defect that is repaired to 1, as an answer has at least its end token."""
    tokens = integer(row, key, at, repairs, 0)
    if tokens == 0:
        repairs.repair("output zero", f"{at}: {key}", "0 output tokens; at least 1 was expected", "taken as 1 token")
        return 1
    return tokens


def seconds(row: Mapping[str, Any], key: str, at: str, repairs: Repairs, unit_s: float = 1.0) -> float | None:
    """Return an optional time in seconds; None where absent or null. Not finite is an error, negative is kept."""
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise repairs.rejection(f"{key} not a time", f"{at}: {key}", f"{value!r}; a finite number was expected")
    return value * unit_s


def block_runs(
    row: Mapping[str, Any], key: str, at: str, repairs: Repairs, prompt_tokens: int, block_tokens: int
) -> list[Run]:
    """Return the block ids as runs, checked against the prompt's length and for uniqueness.

    Ids are prefix-chained, so a repeated id is a defect: from its second occurrence on the prompt has no ids.
    """
    runs = runs_of(block_ids(row, key, at, repairs, prompt_tokens, block_tokens))
    unique_blocks = before_repeat(runs)
    if unique_blocks is None:
        return runs
    problem = f"the id of block {unique_blocks} occurs earlier in the same prompt; prefix-chained ids are unique"
    repairs.repair(
        "block id repeated within a prompt", f"{at}: {key}", problem, "the rest of the prompt is never reused"
    )
    return head(runs, unique_blocks)


def block_ids(
    row: Mapping[str, Any], key: str, at: str, repairs: Repairs, prompt_tokens: int, block_tokens: int
) -> list[int]:
    """Return the block ids; their number must be the floor or ceiling of prompt / block size, else it is a defect.

    Ids beyond the prompt's blocks are cut; with fewer ids than blocks, the rest of the prompt has no ids and is never
    reused.
    """
    ids = row.get(key)
    if ids is None:
        repairs.note(f"{key} absent", at, "the prompt has no block ids: nothing of it can be reused")
        return []
    if not isinstance(ids, list):
        raise repairs.rejection(f"{key} not a list", f"{at}: {key}", "a list of integers was expected")
    floor, partial = divmod(prompt_tokens, block_tokens)
    most = floor + (1 if partial else 0)
    if len(ids) > most or len(ids) < floor:
        problem = f"{len(ids)} block ids for {prompt_tokens} tokens in blocks of {block_tokens}; {floor} or {most} fit"
        repairs.repair(
            "block count does not fit the length",
            f"{at}: {key}",
            problem,
            "extra ids cut; a part of the prompt without ids is never reused",
        )
        return ids[:most]
    return ids
