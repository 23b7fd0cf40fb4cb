"""Published marginal distributions as quantile tables, and draws from them.

A table is a list of (probability, value); a draw interpolates the logarithm of the value between them, so the stated
quantiles are reproduced exactly. Lengths in tokens, times in seconds.

Source of the agent tables: WEKA v8 (github.com/callanjfox/kv-cache-tester, Apache-2.0), 710 conversations with 49,334
requests, measured in November 2026. The highest value closes each table (probability 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scenarios.workloads.corpus import ASSUMED_BASE_S, ASSUMED_PER_TOKEN_S

Array = NDArray[np.float64]
PROBABILITIES = (0.05, 0.25, 0.50, 0.75, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Table:
    """A marginal by quantiles. `least` and `most` close it at probability 0 and 1.

    Above the 99th percentile q the value is q (most / q)^(x^top), x from 0 to 1: `top` is set so that the mean is the
    published one too (1: log-linear like the rest).
    """

    least: float
    quantiles: tuple[float, float, float, float, float, float]
    most: float
    top: float = 1.0

    def draw(self, uniform: Array | float) -> Array:
        """Return the values at these probabilities, shape of `uniform`."""
        u = np.asarray(uniform, dtype=np.float64)
        values = np.log([self.least, *self.quantiles, self.most])
        above = np.clip((u - PROBABILITIES[-1]) / (1.0 - PROBABILITIES[-1]), 0.0, 1.0)
        bent = np.where(above > 0.0, PROBABILITIES[-1] + (1.0 - PROBABILITIES[-1]) * above**self.top, u)
        out: Array = np.exp(np.interp(bent, (0.0, *PROBABILITIES, 1.0), values))
        return out

    def mean(self) -> float:
        """Return the mean of what `draw` gives, by the midpoint rule, finer at the top."""
        below = (np.arange(99_000) + 0.5) / 100_000
        above = 0.99 + 0.01 * (np.arange(100_000) + 0.5) / 100_000
        return float(0.99 * self.draw(below).mean() + 0.01 * self.draw(above).mean())


REQUESTS = Table(1.0, (4, 18, 45.5, 94, 233, 341), 561)
FIRST_PROMPT_TOKENS = Table(9_000, (13_048, 18_600, 24_454, 104_058, 374_960, 708_057), 851_858)
OUTPUT_TOKENS = Table(20, (89, 137, 216, 426, 1_554, 3_686), 18_195, top=10.0)
THINK_AFTER_TOOL_S = Table(0.5, (3, 5, 9, 19, 152, 611), 37_415, top=10.65)
THINK_AFTER_ANSWER_S = Table(1.0, (4, 58, 210, 928, 7_758, 39_529), 77_589, top=5.0)
NEW_TOKENS = Table(64, (190, 377, 727, 1_777, 10_941, 94_290), 851_858)
PROMPT_TOKENS = Table(9_000, (30_544, 66_519, 103_659, 138_566, 300_666, 498_519), 894_371)
"""The last two are not drawn from: they result from the process and validate it."""

GROWTH_TOKENS = Table(64, (185, 365, 690, 1_580, 6_400, 19_000), 60_000, top=5.0)
"""New tokens of an ordinary turn: the quantiles of `NEW_TOKENS` without first requests and breaks, whose 3.4 % of the
requests hold 62 % of the new tokens; mean 1,770 by that share."""

AFTER_COMPACTION_TOKENS = Table(13_500, (17_000, 24_000, 33_000, 47_000, 80_000, 120_000), 180_000)
"""Published: median 33 k after, median 12.8 k kept; the spread is ours."""
THINK_BEFORE_COMPACTION_S = Table(2.0, (8, 45, 160, 500, 4_000, 20_000), 60_000)
"""Published: median 160 s; the spread is ours."""
SUBAGENT_REQUESTS = Table(4, (4, 7, 11, 15, 23, 24), 24)
"""63 sub-agents in WEKA v8: 4 to 24 requests, median 11."""
SUBAGENT_FIRST_TOKENS = Table(9_800, (10_000, 10_200, 10_600, 12_000, 17_000, 20_000), 24_000)
"""A fresh context: tools and system prompt of about 10 k tokens and a task."""
SUBAGENT_THINK_S = Table(0.5, (1, 2, 3.5, 6, 30, 80), 120)
"""Tools of an exploring sub-agent are quick: with 11 requests of 4 s this gives the published median run of 117 s."""

# Prefix breaks among 49,334 requests of WEKA v8: how often, and of which class.
BREAKS_PER_REQUEST = 902 / 48_624
BREAK_SHARE = {"rewrite": 331, "compaction": 199, "shrink": 133, "rewind": 131, "grow": 102, "stalactite": 6}
AFTER_ANSWER_RATIO = 2_376 / (41_895 + 2_376)
SUBAGENT_SESSIONS_RATIO, SUBAGENTS_PER_SUCH_SESSION = 17 / 710, 63 / 17
BACKGROUND_RATIO = 4 / 63

# Service law fitted on the Opus requests of WEKA v8 (R2 0.84): a provider's, with unknown batching.
SERVICE_NEW_S, SERVICE_CACHED_S = 0.0428e-3, 0.0102e-3


def service_s(new_tokens: Array, cached_tokens: Array, output_tokens: Array, noise: Array) -> Array:
    """Return plausible server times in seconds; `noise` is standard normal and enters with a spread of 30 %."""
    law = (
        ASSUMED_BASE_S
        + SERVICE_NEW_S * new_tokens
        + SERVICE_CACHED_S * cached_tokens
        + ASSUMED_PER_TOKEN_S * output_tokens
    )
    out: Array = law * np.exp(0.3 * noise - 0.045)
    return out
