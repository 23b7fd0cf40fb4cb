"""Says whether a recorded signal oscillates, and what that costs. Read `classify` (the order of the words), then
`cycle` (the statistic and its red-noise null), then `run` (a whole run's signals).

Pure functions over arrays: no scenario, no plant, no clock; chance only from generators with fixed seeds.
"""

from scenarios.catalogue.verdict import Cost, SignalVerdict, Word
from scenarios.verdict.classify import judge_signal
from scenarios.verdict.flow import flow_of, flow_word, headline
from scenarios.verdict.run import judge_run
from scenarios.verdict.types import Series

__all__ = [
    "Cost",
    "Series",
    "SignalVerdict",
    "Word",
    "flow_of",
    "flow_word",
    "headline",
    "judge_run",
    "judge_signal",
]
