"""Search the parameters of a law over the uncertainty of its plant. Read `trials`, `evaluation`, then `tune`."""

from scenarios.tune.space import Parameter, parse_parameter
from scenarios.tune.trials import Goal, Trial
from scenarios.tune.tune import Tuned, tune

__all__ = ["Goal", "Parameter", "Trial", "Tuned", "parse_parameter", "tune"]
