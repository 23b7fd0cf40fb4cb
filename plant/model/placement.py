"""How a model is split over accelerators: pipeline, tensor, expert and data parallelism, and whether that divides.

One worker spans `pp * tp * dp` accelerators. Attention is split over `tp` and repeated over `dp`; the routed experts
of a stage are split over the stage's `tp * dp` accelerators as `ep` groups of `expert_tp` slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from plant.model.attention import GroupedAttention, LatentAttention, LinearAttention
from plant.model.hardware import Hardware
from plant.model.moe import Model


class PlacementError(ValueError):
    """A placement that the model or the hardware rules out; the message is one line that says what would fit.

    `reason` is a short key under which refusals are counted.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Widths of one worker. `ep` 0 stands for the widest that the stage allows.

    `context_parallel` shards the KV of latent attention over that many tensor ranks. `hot_ratio` is the load of the
    busiest expert rank over the mean (1 perfect, 1.1-1.25 with replicated hot experts, 1.6-2.4 without). `skew` is the
    Zipf exponent of expert popularity (0: uniform), which the slowest rank feels. `redundant_experts` replicas stand
    beside the experts of a layer; with them, or `balanced`, slots are filled by load. Experts need not divide evenly.
    `remote_experts` moves the routed experts to SRAM accelerators.
    """

    pp: int = 1
    tp: int = 1
    dp: int = 1
    ep: int = 0
    context_parallel: int = 1
    hot_ratio: float = 1.1
    skew: float = 0.0
    remote_experts: bool = False
    redundant_experts: int = 0
    balanced: bool = False

    @property
    def stage(self) -> int:
        """Accelerators of one pipeline stage."""
        return self.tp * self.dp

    @property
    def gpus(self) -> int:
        """Accelerators of the worker."""
        return self.pp * self.stage

    @property
    def expert_groups(self) -> int:
        """Groups over which a layer's experts are divided."""
        return self.ep or self.stage

    @property
    def expert_tp(self) -> int:
        """Slices of one expert."""
        return self.stage // self.expert_groups

    def label(self) -> str:
        """Return the text form, as `parse_placement` reads it."""
        text = f"pp{self.pp}tp{self.tp}dp{self.dp}ep{self.expert_groups}"
        if self.context_parallel > 1:
            text += f"cp{self.context_parallel}"
        if self.redundant_experts:
            text += f"r{self.redundant_experts}"
        return text + ("daf" if self.remote_experts else "")

    @property
    def even(self) -> bool:
        """Whether every rank has the same share of the work, so that only `hot_ratio` tells the slowest apart."""
        return self.skew <= 0.0 and not self.redundant_experts


def parse_placement(text: str) -> Placement:
    """Read `pp2tp8dp1ep8` (separators allowed, `cp` and `daf` optional).

    Raises
    ------
    PlacementError
        When a part is not understood.
    """
    words = re.findall(r"([a-z]+)\s*[=:]?\s*(\d*)", text.lower())
    names = {"pp": "pp", "tp": "tp", "dp": "dp", "ep": "ep", "cp": "context_parallel", "r": "redundant_experts"}
    widths: dict[str, int] = {}
    remote = False
    for name, number in words:
        if name == "daf" and not number:
            remote = True
        elif name in names and number and int(number) > 0:
            widths[names[name]] = int(number)
        else:
            raise PlacementError(
                "syntax", f"placement `{text}`: `{name}{number}` is not one of pp, tp, dp, ep, cp, r, daf"
            )
    if not widths:
        raise PlacementError("syntax", f"placement `{text}` is empty; write for example pp2tp8dp1ep8")
    return replace(Placement(remote_experts=remote), **widths)  # type: ignore[arg-type]  # all name whole numbers


def divisors(number: int, limit: int) -> list[int]:
    """Return the divisors of `number` up to `limit`."""
    return [d for d in range(1, min(number, limit) + 1) if number % d == 0]


def check_placement(model: Model, hardware: Hardware, place: Placement) -> None:
    """Refuse widths that do not divide the model or that reach past the scale-up domain.

    Raises
    ------
    PlacementError
        With one line that names the width and what would fit.
    """
    if min(place.pp, place.tp, place.dp, place.expert_groups, place.context_parallel) < 1:
        raise PlacementError("syntax", f"{place.label()}: widths start at 1")
    if place.pp > model.layers:
        raise PlacementError("pp", f"pp={place.pp}: {model.name} has {model.layers} layers; at most pp={model.layers}")
    for group in model.attention:
        kinds = [group.heads]
        if isinstance(group, LinearAttention):
            kinds.append(group.key_heads)
        for heads in kinds:
            if heads % place.tp and not (isinstance(group, LinearAttention) and place.tp % heads == 0):
                fits = divisors(heads, hardware.domain)
                raise PlacementError("tp", f"tp={place.tp} does not divide {group.label}'s {heads} heads; fits: {fits}")
        if isinstance(group, GroupedAttention) and group.kv_heads % place.tp and place.tp % group.kv_heads:
            raise PlacementError("tp", f"tp={place.tp} neither divides nor multiplies {group.kv_heads} KV heads")
    if not model.experts and place.dp > 1:
        raise PlacementError("dp", f"dp={place.dp}: {model.name} is dense, so its replicas share nothing; use workers")
    if model.dense_layers and model.dense_ffn % place.tp:
        raise PlacementError("tp", f"tp={place.tp} does not divide the {model.dense_ffn} columns of a dense layer")
    if place.tp > hardware.domain:
        raise PlacementError("scale_up", f"tp={place.tp} is wider than the scale-up domain of {hardware.domain}")
    if place.stage % place.expert_groups:
        fits = divisors(place.stage, place.stage)
        raise PlacementError(
            "ep", f"ep={place.ep} does not divide the stage's {place.stage} accelerators; fits: {fits}"
        )
    if model.experts and model.experts + place.redundant_experts < place.expert_groups:
        raise PlacementError(
            "ep",
            f"ep={place.expert_groups} is more than {model.experts} experts and {place.redundant_experts} replicas",
        )
    if place.redundant_experts and (not model.experts or place.remote_experts):
        raise PlacementError("ep", f"{place.redundant_experts} redundant experts: {model.name} has none on these ranks")
    if model.experts and model.expert_ffn % place.expert_tp:
        raise PlacementError("ep", f"{place.expert_tp} slices do not divide an expert's {model.expert_ffn} columns")
    if place.tp % place.context_parallel:
        raise PlacementError("cp", f"cp={place.context_parallel} does not divide tp={place.tp}")
    if place.context_parallel > 1 and not any(isinstance(group, LatentAttention) for group in model.attention):
        raise PlacementError("cp", f"cp={place.context_parallel}: {model.name} has no latent attention to shard")


def placements(model: Model, gpus: range, *, widest_tp: int = 8, deepest_pp: int = 32) -> Iterator[Placement]:
    """Yield every product of widths whose accelerators lie in `gpus`, expert parallelism as wide as divides.

    Tensor widths are powers of two, pipeline depths powers of two and three times such. A lone tensor group also comes
    with its experts sliced instead of divided. Nothing is checked here: a caller counts what `check_placement` refuses.
    """
    most = gpus.stop - 1
    for pp in (p for p in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if p <= min(most, deepest_pp)):
        for tp in (t for t in (1, 2, 4, 8, 16, 32) if t <= widest_tp):
            for dp in range(1, most // (pp * tp) + 1 if model.experts else 2):
                if pp * tp * dp not in gpus:
                    continue
                stage = tp * dp
                if not model.experts:
                    yield Placement(pp=pp, tp=tp, ep=1)
                    continue
                widest = max(d for d in divisors(stage, stage) if model.experts % d == 0)
                for ep in sorted({widest, 1 if dp == 1 else widest}, reverse=True):
                    yield Placement(pp=pp, tp=tp, dp=dp, ep=ep)
