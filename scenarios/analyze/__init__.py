"""What theory expects of each candidate before it runs. Read `predict` (one prediction), then `verify` (measurement
beside it), then `model` (where the plant's numbers come from).
"""

from scenarios.analyze.analysis import Analysis, analyze
from scenarios.analyze.prediction import Prediction

__all__ = ["Analysis", "Prediction", "analyze"]
