"""A file of an unknown format gives an error of one line that names the closest format."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.errors import UserError
from scenarios.workloads.readers.detect import read


@pytest.mark.parametrize(
    ("name", "text", "nearest"),
    [
        (
            "a.jsonl",
            '{"ts": 1, "hash_ids": [4]}\n',
            "it begins as none of parquet, weka, tracelab",
        ),
        (
            "b.json",
            '{"chat_id": 3, "input_length": 4}',
            "nearest to bailian, but its first row has no `parent_chat_id`",
        ),
        ("c.csv", "TIMESTAMP,ContextTokens\n1,2\n", "nearest to azure, but its first line names no column `Generated"),
        ("d.json", '{"requests": 3}', "nearest to weka, but its `requests` is not a list; 17 others fit less"),
        ("e.json", '[{"a": 1}]', "it begins as none of parquet, weka, tracelab"),
    ],
)
def test_an_unknown_format_is_reported_in_one_short_line_with_the_closest_format(
    tmp_path: Path, name: str, text: str, nearest: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as refused:
        read(tmp_path / name)
    message = str(refused.value).removeprefix(f"{tmp_path / name}: no known format: ")
    assert message.startswith(nearest)
    assert len(message) < 240
    assert "\n" not in message
    with pytest.raises(UserError, match=f"no known format in {name}: "):
        read(tmp_path)
