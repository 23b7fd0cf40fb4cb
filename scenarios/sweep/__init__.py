"""A grid of parameters, the measured verdict at each point, and theory's word beside it. Read `grid`, then `sweep`."""

from scenarios.sweep.grid import Axis, parse_axis
from scenarios.sweep.sweep import Point, Sweep, sweep

__all__ = ["Axis", "Point", "Sweep", "parse_axis", "sweep"]
