"""Long lines: ids are read as arrays, and every value is what the plain parser returns."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.errors import UserError
from scenarios.workloads.readers import detect, long_lines
from tests.scenarios.workloads.kit import conversation, kinds, row, written


def plain(value: Any) -> Any:
    """Return a value with its arrays as lists."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


IDS = st.one_of(
    st.lists(st.integers(0, 10**18 - 1)),
    st.lists(
        st.one_of(st.integers(-5, 2**64 - 1), st.none(), st.text(), st.floats(allow_nan=False, allow_infinity=False))
    ),
    st.none(),
    st.text(),
)


@given(rows=st.lists(st.fixed_dictionaries({"hash_ids": IDS, "x": st.text()})), spaced=st.booleans())
def test_every_value_is_what_the_plain_parser_returns(rows: list[dict[str, Any]], spaced: bool) -> None:
    text = json.dumps({"requests": rows}, separators=(", ", ": ") if spaced else (",", ":")).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_lines, "LONG_BYTES", 0)
        assert plain(long_lines.loads(text)) == orjson.loads(text)


@pytest.mark.parametrize("bad", ["[1,,2]", "[1,]", "[,1]", "[1 2]", "[1", "1]"])
def test_lists_that_are_no_json_stay_errors(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_lines, "LONG_BYTES", 0)
    with pytest.raises(orjson.JSONDecodeError):
        long_lines.loads(f'{{"hash_ids":{bad}}}'.encode())


def grown(requests: int) -> dict[str, Any]:
    """Return a conversation whose prompts grow by 50 blocks each."""
    return conversation([row(9 * k, 64 * 50 * (k + 1)) for k in range(requests)])


def test_a_long_line_reads_as_a_short_one_and_takes_few_bytes_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, grown(90))
    monkeypatch.setattr(long_lines, "LONG_BYTES", 1 << 40)
    short = detect.read(path)
    monkeypatch.setattr(long_lines, "LONG_BYTES", 1 << 10)
    tracemalloc.start()
    long = detect.read(path)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (long.digest(), kinds(long)) == (short.digest(), kinds(short))
    assert peak_bytes < 6 * path.stat().st_size  # as objects, the ids alone take as much


def test_a_bad_id_in_a_long_line_is_still_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_lines, "LONG_BYTES", 0)
    talk = grown(4)
    talk["requests"][2]["hash_ids"][7] = None
    with pytest.raises(UserError, match=r"traces\.jsonl:1: requests\[2\]: hash_ids: None"):
        detect.read(written(tmp_path, talk))
