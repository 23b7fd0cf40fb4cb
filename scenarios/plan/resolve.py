"""Resolve command-line names to models, hardware, engines and ranges of accelerators; errors are one line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from plant.model.hardware import Engine, Hardware
from plant.model.huggingface import ConfigError, load_config
from plant.model.moe import Model
from plant.model.precision import FORMATS
from plant.presets.engines import ENGINES
from plant.presets.hardware import HARDWARE
from plant.presets.models import MODELS
from scenarios.errors import UserError, nearest

T = TypeVar("T")


def _named(kind: str, word: str, known: Mapping[str, T]) -> T:
    lower = word.lower()
    if lower not in known:
        raise UserError(f"{kind} `{word}` is unknown{nearest(lower, known)}; known: {', '.join(known)}")
    return known[lower]


def model_named(word: str | None, config: Path | None) -> Model:
    """Return the preset `word`, or the model that a `config.json` describes.

    Raises
    ------
    UserError
        When neither or both are given, the name is unknown or the file cannot be read.
    """
    if config is not None:
        if word is not None:
            raise UserError("--model and --config name two models; use one of them")
        try:
            return load_config(config)
        except ConfigError as problem:
            raise UserError(f"--config {config}: {problem}") from problem
    if word is None:
        raise UserError(f"--model is missing; known: {', '.join(MODELS)}; or --config PATH to a config.json")
    return _named("model", word, MODELS)


def in_formats(model: Model, precision: str | None, kv_format: str | None) -> Model:
    """Return `model` with its weights in `precision` and its KV cache in `kv_format` (None: as it is).

    Raises
    ------
    UserError
        When a format is unknown.
    """
    chosen = model.precision
    if precision is not None:
        fmt = _named("precision", precision, FORMATS)
        travelling = {"bf16": 2.0, "fp8": 1.03125, "fp4": 0.5625}[fmt.math]
        chosen = replace(chosen, dense=fmt.name, experts=fmt.name, attention=None, dispatch_bytes=travelling)
    if kv_format is not None:
        chosen = replace(chosen, kv_bytes=_named("kv-format", kv_format, {"bf16": 2.0, "fp8": 1.0, "nvfp4": 0.5625}))
    return replace(model, precision=chosen)


def hardware_named(words: str) -> list[Hardware]:
    """Return the presets in a comma-separated list."""
    return [_named("hardware", word.strip(), HARDWARE) for word in words.split(",")]


def engine_named(word: str) -> Engine:
    """Return the engine preset."""
    return _named("engine", word, ENGINES)


def gpu_range(text: str) -> range:
    """Read `32` or `16..64`.

    Raises
    ------
    UserError
        When it is neither, or out of order.
    """
    low, dots, high = text.partition("..")
    try:
        first, last = int(low), int(high if dots else low)
    except ValueError:
        raise UserError(f"--gpus {text}: write a number such as 32 or a range such as 16..64") from None
    if not 1 <= first <= last <= 1024:
        raise UserError(f"--gpus {text}: a range from 1 to 1024 in rising order was expected")
    return range(first, last + 1)
