"""What every part of a scenario file shares: unknown keys are refused, values are frozen and finite."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from policies.parameters import Count, NotNegative, Positive, Share

__all__ = ["Count", "NotNegative", "Positive", "ScenarioTable", "Share"]


class ScenarioTable(BaseModel):
    """A table of a scenario file."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=False)

    @model_validator(mode="before")
    @classmethod
    def _truth_is_no_number(cls, given: Any) -> Any:  # Any: what a TOML file holds
        if isinstance(given, dict):
            for key, value in given.items():
                info = cls.model_fields.get(key)
                if isinstance(value, bool) and info is not None and not _takes_truth(info.annotation):
                    raise ValueError(f"{key} = {str(value).lower()}: true and false are no value of this key")
        return given


def _takes_truth(annotation: Any) -> bool:  # Any: a type expression
    return annotation in (bool, Any) or any(_takes_truth(inner) for inner in getattr(annotation, "__args__", ()))
