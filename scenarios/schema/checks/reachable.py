"""Thresholds that what they are held against cannot reach: a law with such a threshold never acts."""

from __future__ import annotations

from scenarios.schema.contents import ScenarioContents

# What a pool's load is a share of; the other measures count turns, which have no bound.
SHARES = {"occupancy": "busy slots over slots", "kv": "KV tokens over their capacity"}


def refuse_unreachable_thresholds(scenario: ScenarioContents) -> None:
    """Raise ValueError for a capacity law whose threshold for more workers exceeds the range of its measure."""
    for candidate in scenario.candidates:
        law = candidate.capacity
        measure = str(getattr(law, "measure", ""))
        if measure not in SHARES:
            continue
        tolerance = getattr(law, "tolerance_ratio", 0.0)
        for key in ("target", "up"):
            value = getattr(law, key, None)
            if not isinstance(value, int | float):
                continue
            least = value * (1.0 + tolerance) if key == "target" else value
            if least > 1.0:
                place = f"candidates.{candidate.name}.capacity.{key} = {value:g}"
                raise ValueError(
                    f"{place} can never be reached: {_why(measure, value, tolerance if key == 'target' else 0.0)}"
                )
        down = getattr(law, "down", None)
        if isinstance(down, int | float) and down > 1.0:
            raise ValueError(f"candidates.{candidate.name}.capacity.down = {down:g}: {_why(measure, down, 0.0)}")


def _why(measure: str, value: float, tolerance: float) -> str:
    share = f"{measure} is a share from 0 to 1 ({SHARES[measure]})"
    if value > 1.0:
        return share + (f"; {value / 100.0:g} for {value:g} %?" if 10.0 <= value <= 100.0 else "")
    return f"{share}, and a pool grows only above target x (1 + tolerance_ratio) = {value * (1.0 + tolerance):.3g}"
