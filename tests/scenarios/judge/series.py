"""Files of series for the tests of judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from scenarios.judge import Judged, judge_file

HOUR_S = 3600.0


def write(path: Path, **columns: object) -> Path:
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def only(path: Path, **options: object) -> Judged:
    (judged,) = judge_file(path, **options)  # type: ignore[arg-type]
    return judged


def tracker(tmp_path: Path) -> Path:
    t = np.arange(0, 2 * HOUR_S, 5.0)
    load = 100 + 40 * np.sin(2 * np.pi * t / 300)
    return write(tmp_path / "tracker.csv", t_s=t, load_per_s=load, replicas=np.ceil(load / 10).astype(int))
