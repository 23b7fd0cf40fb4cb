"""Where two candidates are equal, a finding names both."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from scenarios.report.numbers import listed
from scenarios.run.record import RunData
from tests.scenarios.fake_runs import fake_run, page


def twin(run: RunData, name: str) -> RunData:
    return replace(run, candidate=name, summary={**run.summary, "candidate": name})


def test_names_are_listed_as_a_sentence_has_them() -> None:
    assert [listed(names) for names in ("", "a", "ab", "abc", "aba")] == ["", "a", "a and b", "a, b and c", "a and b"]


@pytest.mark.parametrize("count", [2, 3])
def test_the_titles_of_equal_runs_name_every_one_of_them(count: int) -> None:
    first = fake_run("first", relay=False, cluster=True)
    runs = [first, twin(first, "second"), twin(first, "third")][:count]
    every = listed([run.candidate for run in runs])
    titles = "\n".join(re.findall(r"<h3>(.*?)</h3>", page(runs)))
    assert f"fares worst, under {every}: " in titles
    assert f"under {every} the p99 of a whole turn moves between" in titles
    assert f"In flight by stage, on average: {every} hold " in titles
    assert re.search(rf"KV memory: \w+ has .* in use under {every}", titles)
