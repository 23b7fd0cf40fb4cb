"""Identify a plant model from one open-loop experiment. Read `identify` (the admission loop's experiment and its fits),
then `startup` (the capacity loop's), then `cache`.
"""

from scenarios.identify.identify import Identified, identify
from scenarios.identify.startup import IdentifiedStartup, identify_startup

__all__ = ["Identified", "IdentifiedStartup", "identify", "identify_startup"]
