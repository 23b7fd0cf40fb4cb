"""Take one field of a JSON row, with a message that says which, where and what would be right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from scenarios.workloads.blocks import Run, before_repeat, head, runs_of
from scenarios.workloads.repairs import Repairs


def whole(row: Mapping[str, Any], key: str, at: str, repairs: Repairs, least: int) -> int:
    """Return a required whole number that is at least `least` (0 or 1)."""
    value = row.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        what = "missing" if value is None else f"{value!r}"
        raise repairs.refuse(f"{key} missing", f"{at}: {key}", f"{what}; a whole number of tokens was expected")
    if value < least:
        kind = f"{key} negative" if value < 0 else f"{key} zero"
        raise repairs.refuse(kind, f"{at}: {key}", f"{value}; at least {least} was expected")
    return value


def output(row: Mapping[str, Any], key: str, at: str, repairs: Repairs) -> int:
    """Return an output length: 0 is a defect that is mended to 1, as an answer has at least its end mark."""
    tokens = whole(row, key, at, repairs, 0)
    if tokens == 0:
        repairs.mend("output zero", f"{at}: {key}", "0 output tokens; at least 1 was expected", "taken as 1 token")
        return 1
    return tokens


def seconds(row: Mapping[str, Any], key: str, at: str, repairs: Repairs, unit_s: float = 1.0) -> float | None:
    """Return an optional time in seconds; None where absent or null. Not finite is an error, negative is kept."""
    value = row.get(key)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise repairs.refuse(f"{key} not a time", f"{at}: {key}", f"{value!r}; a finite number was expected")
    return value * unit_s


def block_runs(
    row: Mapping[str, Any], key: str, at: str, repairs: Repairs, prompt_tokens: int, block_tokens: int
) -> list[Run]:
    """Return the block ids as runs, held to the prompt's length and to standing once each.

    Ids are prefix-chained, so that one that stands twice is a defect: what follows its second place has no name.
    """
    runs = runs_of(block_ids(row, key, at, repairs, prompt_tokens, block_tokens))
    sound = before_repeat(runs)
    if sound is None:
        return runs
    wrong = f"the id of block {sound} stands earlier in the same prompt; prefix-chained ids stand once"
    repairs.mend("block id repeated within a prompt", f"{at}: {key}", wrong, "the rest of the prompt is never reused")
    return head(runs, sound)


def block_ids(
    row: Mapping[str, Any], key: str, at: str, repairs: Repairs, prompt_tokens: int, block_tokens: int
) -> list[int]:
    """Return the block ids, held to the prompt's length: floor or ceil of prompt / block is a fit, else a defect.

    More ids than the prompt has blocks are cut to its length; with fewer, the rest of the prompt has no name and can
    never be reused.
    """
    ids = row.get(key)
    if ids is None:
        repairs.note(f"{key} absent", at, "the prompt has no named blocks: nothing of it can be reused")
        return []
    if not isinstance(ids, list):
        raise repairs.refuse(f"{key} not a list", f"{at}: {key}", "a list of whole numbers was expected")
    floor, partial = divmod(prompt_tokens, block_tokens)
    most = floor + (1 if partial else 0)
    if len(ids) > most or len(ids) < floor:
        wrong = f"{len(ids)} block ids for {prompt_tokens} tokens in blocks of {block_tokens}; {floor} or {most} fit"
        repairs.mend(
            "block count does not fit the length",
            f"{at}: {key}",
            wrong,
            "extra ids cut; a part of the prompt without ids is never reused",
        )
        return ids[:most]
    return ids
