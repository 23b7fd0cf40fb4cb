"""The verdict on time series from elsewhere. Read `judged` (the judgement of each), then `read` (what files are
understood), then `mechanism` (what probably makes the cycle).
"""

from scenarios.judge.judged import Judged, judge_file, judge_range, judge_series

__all__ = ["Judged", "judge_file", "judge_range", "judge_series"]
