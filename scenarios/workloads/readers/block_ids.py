"""Block ids of prompts: validate them, give numbers to raw hashes, and check the block size against the lengths.

Ids are integers or strings. Those below 2^62 are kept; larger integers (64-bit hashes, as engines write them) and
strings (hexadecimal digests) are numbered from 2^62 in the order in which they appear, so equal ids stay equal. A float
is refused unless it is an integer that a double holds exactly: two ids that round to one would make a false hit.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenarios.errors import UserError
from scenarios.workloads.blocks import Run, before_repeat, head, runs_of
from scenarios.workloads.repairs import Repairs

FIRST_NUMBER = 1 << 62
EXACT_FLOAT = 2.0**53
SIZES_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Block sizes in use (vLLM 16, TensorRT-LLM 32, AgentX 64, LMCache 256, Mooncake 512), and their neighbours."""
FEWEST_ROWS = 10
"""Below this many rows, rows that do not fit are defects of their own unless another size fits all of them."""
KEPT = 10_000


class BlockIds:
    """Read the block ids of one file's prompts, in blocks of `block_tokens` tokens, from the field `key`.

    A prompt has floor or ceil(tokens / block size) ids. Ids beyond are cut; with fewer ids, the rest of the prompt is
    never reused. Where that happens on most rows the block size is wrong, and `check` raises.
    """

    def __init__(self, repairs: Repairs, block_tokens: int, key: str = "hash_ids") -> None:
        self.block_tokens = block_tokens
        self._repairs = repairs
        self.key = key
        self._numbers: dict[int | str, int] = {}
        self._rows = self._misfits = 0
        self._lengths: list[tuple[int, int]] = []

    def runs(self, row: Mapping[str, Any], at: str, prompt_tokens: int) -> list[Run]:
        """Return the block ids of a row as runs.

        Ids are prefix-chained, so a repeated id is a defect: from its second occurrence on the prompt has no ids.
        """
        at_key = f"{at}: {self.key}"
        listed = row.get(self.key)
        if listed is None:
            self._repairs.note(f"{self.key} absent", at, "the prompt has no block ids: nothing of it can be reused")
            return []
        if not isinstance(listed, list | np.ndarray):
            raise self._repairs.rejection(f"{self.key} not a list", at_key, "a list of ids was expected")
        runs = runs_of(self._array(listed, at_key)[: self._blocks(len(listed), prompt_tokens, at_key)])
        unique_blocks = before_repeat(runs)
        if unique_blocks is None:
            return runs
        problem = f"the id of block {unique_blocks} occurs earlier in the same prompt; prefix-chained ids are unique"
        done = "the rest of the prompt is never reused"
        self._repairs.repair("block id repeated within a prompt", at_key, problem, done)
        return head(runs, unique_blocks)

    def check(self, path: Path) -> None:
        """Raise UserError where most rows do not fit the block size: that is no defect of rows."""
        if 2 * self._misfits <= self._rows:
            return
        fitting = [size for size in SIZES_TOKENS if all(_fits(size, *lengths) for lengths in self._lengths)]
        size = fitting[-1] if fitting else None
        if self._rows < (2 if size else FEWEST_ROWS):
            return
        first = f"{self._lengths[0][0]} ids for a prompt of {self._lengths[0][1]} tokens"
        advice = f"all rows fit {size} tokens a block: give --block-tokens {size}" if size else "no usual size fits all"
        raise UserError(
            f"{path}: {self._misfits} of {self._rows} rows do not fit blocks of {self.block_tokens} tokens "
            f"({first}); {advice}"
        )

    def _blocks(self, ids: int, prompt_tokens: int, at_key: str) -> int:
        """Return how many of the ids are used, and count a number that does not fit the length."""
        self._rows += ids > 0
        if ids and len(self._lengths) < KEPT:
            self._lengths.append((ids, prompt_tokens))
        if _fits(self.block_tokens, ids, prompt_tokens):
            return ids
        self._misfits += ids > 0
        least, most = prompt_tokens // self.block_tokens, -(-prompt_tokens // self.block_tokens)
        problem = (
            f"{ids} block ids for {prompt_tokens} tokens in blocks of {self.block_tokens}; {least} or {most} fit "
            "(--block-tokens states another size)"
        )
        done = "extra ids cut; a part of the prompt without ids is never reused"
        self._repairs.repair("block count does not fit the length", at_key, problem, done)
        return min(ids, most)

    def _array(self, listed: list[Any] | NDArray[np.int64], at_key: str) -> NDArray[np.int64]:
        try:
            array = np.asarray(listed)
        except (ValueError, OverflowError):
            array = np.zeros(0, dtype=object)
        if array.dtype == np.int64 and array.ndim == 1 and array.max() < FIRST_NUMBER:
            return array
        return np.array([self._number(value, at_key) for value in listed], dtype=np.int64)

    def _number(self, value: Any, at_key: str) -> int:
        if isinstance(value, float) and value.is_integer() and abs(value) < EXACT_FLOAT:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            problem = f"{value!r}; an integer below 2^64 or a string was expected"
            raise self._repairs.rejection(f"{self.key} not an id", at_key, problem)
        if isinstance(value, int) and abs(value) < FIRST_NUMBER:
            return value
        return self._numbers.setdefault(value, FIRST_NUMBER + len(self._numbers))


def _fits(size: int, ids: int, prompt_tokens: int) -> bool:
    return prompt_tokens // size <= ids <= -(-prompt_tokens // size)
