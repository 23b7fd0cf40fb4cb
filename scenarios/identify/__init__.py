"""A plant's model from one open-loop experiment. Read `identify` (the experiment and its fits), then `cache`."""

from scenarios.identify.identify import Identified, identify

__all__ = ["Identified", "identify"]
