"""The verdict on series that did not come from us. Read `judged` (what is said of each), then `read` (what files are
understood), then `mechanism` (what probably makes the cycle).
"""

from scenarios.judge.judged import Judged, judge_file, judge_series

__all__ = ["Judged", "judge_file", "judge_series"]
