"""A signal of a pool is judged like any other where somebody asks for it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scenarios.verdict import judge_run


def test_a_pool_signal_is_judged_when_asked_for_and_only_then() -> None:
    t = np.arange(0.0, 600.0, 0.5)
    busy = 8.0 + 6.0 * np.sign(np.sin(2 * np.pi * t / 20.0))
    record = pd.DataFrame({"t_s": t} | {f"pool.decode.busy_slots_{part}": busy for part in ("mean", "min", "max")})
    name = "pool.decode.busy_slots"
    asked = judge_run(record, slots=16, service_per_s=1.0, warmup_s=0.0, horizon_s=600.0, asked=[name, "kv.contexts"])
    assert asked[name].verdict == "limit_cycle"
    assert asked[name].period_s is not None
    assert abs(asked[name].period_s - 20.0) < 0.5
    assert set(asked) == {name}  # the record has no tiers
    assert judge_run(record, slots=16, service_per_s=1.0, warmup_s=0.0, horizon_s=600.0) == {}
