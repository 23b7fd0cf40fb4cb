"""Random draws of a change of configuration: how long it takes (lognormal) and whether it fails.

The draws belong to (worker, epoch), so two policies that reconfigure the same worker in the same epoch see the same.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from orchestrator.rng import uniform
from orchestrator.turn import WorkerId
from plant.cluster_spec import ConfigurationSpec

_NORMAL = NormalDist()
_EPOCHS = 1 << 20


def load_span_s(spec: ConfigurationSpec, loaded: str | None, stream: int, worker: WorkerId, epoch: int) -> float:
    """Return the seconds from a drained worker to a serving one.

    Parameters
    ----------
    spec : ConfigurationSpec
        What is to be served.
    loaded : str or None
        Name of the weights on the worker; the same ones need no loading.
    stream : int
        Key of the random stream.
    worker, epoch : int
        The worker and the epoch to which the draw belongs.
    """
    mean_s = spec.flip_s if loaded is not None and loaded == spec.weights else spec.load_s
    if spec.load_cv_ratio > 0.0:
        sigma2 = math.log1p(spec.load_cv_ratio**2)
        z = _NORMAL.inv_cdf(uniform(stream, worker * _EPOCHS + epoch, 0))
        mean_s *= math.exp(math.sqrt(sigma2) * z - 0.5 * sigma2)
    return mean_s + spec.warm_s


def load_fails(spec: ConfigurationSpec, stream: int, worker: WorkerId, epoch: int) -> bool:
    """Return whether this load fails."""
    return spec.fail_ratio > 0.0 and uniform(stream, worker * _EPOCHS + epoch, 1) < spec.fail_ratio
