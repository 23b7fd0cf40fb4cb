"""Laws over draws of the uncertainty that a scenario states. Read `draws`, then `robust`, then `outcome`."""

from scenarios.robust.robust import LawYield, Robustness, robust

__all__ = ["LawYield", "Robustness", "robust"]
