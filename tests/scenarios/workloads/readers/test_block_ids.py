"""Block ids as files hold them: raw hashes, strings, floats; and a block size that is not the format's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.errors import UserError
from scenarios.workloads import derive
from scenarios.workloads.readers import detect
from scenarios.workloads.readers.block_ids import SIZES_TOKENS, BlockIds
from scenarios.workloads.readers.rows import ReadOptions
from scenarios.workloads.repairs import Repairs
from tests.scenarios.workloads.kit import conversation, jsonl, kinds, mooncake, row

BIG = [2**63 + 11, 2**64 - 3, 2**63 + 900]


@pytest.mark.parametrize("ids", [BIG, ["9f2c", "00ab", "9f2d"], [2**62 + 5, 7, "x"]])
def test_raw_hashes_of_64_bits_and_strings_hit_where_they_are_equal(tmp_path: Path, ids: list[Any]) -> None:
    first, second, third = ids
    path = jsonl(tmp_path, mooncake(0, 1_024, [first, second]), mooncake(900, 1_024, [first, third]))
    assert derive.hit_token_ratio(detect.read(path)) == 0.25


def test_raw_hashes_in_a_weka_conversation_hit_too(tmp_path: Path) -> None:
    turns = [row(0, 192, hash_ids=BIG), row(9, 256, hash_ids=[*BIG, 2**63 + 1])]
    assert derive.hit_token_ratio(detect.read(jsonl(tmp_path, conversation(turns)))) == pytest.approx(192 / 448)


@pytest.mark.parametrize("bad", [None, 1.5, 2.0**53 + 2.0, "", [1], {"a": 1}])
def test_an_id_that_is_no_integer_or_text_is_refused_with_its_place(tmp_path: Path, bad: object) -> None:
    path = jsonl(tmp_path, mooncake(0, 1_024, [1, 2]), mooncake(1, 1_024, [1, bad]))  # type: ignore[list-item]
    with pytest.raises(UserError, match=r"t\.jsonl:2: hash_ids: "):
        detect.read(path)
    assert kinds(detect.read(path, on_error="skip")) == {"hash_ids not an id": 1}


@given(ids=st.lists(st.one_of(st.integers(0, 2**64 - 1), st.text("0123456789abcdef", min_size=1)), unique=True))
def test_equal_ids_get_equal_numbers_and_different_ids_different_ones(ids: list[int | str]) -> None:
    read = BlockIds(Repairs(), 1)
    once = read.runs({"hash_ids": ids}, "", len(ids))
    again = read.runs({"hash_ids": ids}, "", len(ids))
    assert once == again
    assert sum(count for _, count in once) == len(ids)


@pytest.mark.parametrize("size", [16, 64, 1_024])
def test_a_block_size_that_fits_all_rows_is_named_and_is_no_repair_of_every_row(tmp_path: Path, size: int) -> None:
    lengths = [700 + 531 * k for k in range(12)]
    rows = [mooncake(k * 100, n, list(range(99 * k, 99 * k + -(-n // size)))) for k, n in enumerate(lengths)]
    path = jsonl(tmp_path, *rows)
    with pytest.raises(UserError, match=f"of 12 rows do not fit blocks of 512 tokens .* give --block-tokens {size}"):
        detect.read(path)
    assert kinds(detect.read(path, options=ReadOptions(block_tokens=size))) == {}


def test_ids_that_fit_no_size_are_an_error_and_a_few_of_many_are_repaired(tmp_path: Path) -> None:
    good = [mooncake(k, 1_024, [2 * k, 2 * k + 1]) for k in range(20)]
    odd = [mooncake(k + 20, 1_024, list(range(100 * k, 100 * k + 40 + k))) for k in range(30)]
    with pytest.raises(UserError, match="no usual size fits all"):
        detect.read(jsonl(tmp_path, *good, *odd))
    assert kinds(detect.read(jsonl(tmp_path, *good, *odd[:3]))) == {"block count does not fit the length": 3}


def test_a_weka_conversation_of_another_block_size_than_it_states(tmp_path: Path) -> None:
    turns = [row(9 * k, 1_600 + 160 * k, hash_ids=list(range(100 + 10 * k))) for k in range(6)]
    path = jsonl(tmp_path, conversation(turns))
    with pytest.raises(UserError, match="give --block-tokens 16"):
        detect.read(path)
    (talk,) = detect.read(path, options=ReadOptions(block_tokens=16)).conversations
    assert talk.block_tokens == 16


def test_the_usual_sizes_rise() -> None:
    assert list(SIZES_TOKENS) == sorted(set(SIZES_TOKENS))
