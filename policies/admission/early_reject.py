"""Refuse at the door what decode could not serve in time: on its load now, or on its load when fill will end.

    n     current:    x                                                      turns
          predicted:  w + b + x max(0, 1 - L / t_d)                          turns
    shed  1 while n >= limit N, else 0                                       1
    w, b, x   turns in fill, ready, decoding                                 turns
    L     time to fill                                                       s
    t_d   decode time assumed alike for all                                  s

On the present load the decision is blind to all that is being filled, so fill and decode swing in anti-phase; the
predicted load counts it, a Smith predictor with a crude model. Source: Qin et al., "Mooncake: A KVCache-centric
disaggregated architecture for LLM serving" (arXiv 2407.00079v1, section 7). Missing data: without slots, nothing is
refused.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from orchestrator.messages import AdmissionCommand, AdmissionReading
from orchestrator.ports import Cadence
from policies.design.structure import RelayOnBusy
from policies.design.tandem_model import TandemModel
from policies.parameters import NotNegative, Positive


class EarlyReject:
    """Shed all arrivals while the decode load is at its limit.

    Parameters
    ----------
    cadence : Cadence
    load : {"current", "predicted"}
        Which load is held against the limit.
    limit_ratio : float
        Load of the decode pool above which arrivals are refused, > 0.
    fill_s, decode_s : float
        L and t_d, for the prediction.
    """

    no_linearisation = (
        "on the predicted load it switches on a weighted sum of fill, ready and decoding turns, which has no "
        "orbit in closed form"
    )
    example: ClassVar = {"load": "predicted", "limit_ratio": 1.0, "fill_s": 0.5, "decode_s": 2.5}

    def __init__(
        self,
        cadence: Cadence,
        *,
        load: Literal["current", "predicted"],
        limit_ratio: Positive,
        fill_s: NotNegative = 0.0,
        decode_s: Positive = 1.0,
    ) -> None:
        self.cadence = cadence
        self.load, self.limit_ratio = load, limit_ratio
        self._stays = max(0.0, 1.0 - fill_s / decode_s) if load == "predicted" else 1.0

    def act(self, y: AdmissionReading) -> AdmissionCommand:
        """Refuse everything or nothing."""
        n = y.busy_slots * self._stays
        if self.load == "predicted":
            n += y.filling_turns + y.ready_turns
        full = y.slots > 0 and n >= self.limit_ratio * y.slots
        return AdmissionCommand(shed_ratio=dict.fromkeys(y.by_class, 1.0 if full else 0.0))

    def structure(self, model: TandemModel) -> RelayOnBusy | None:
        """Return the relay without a band that it is on the present load; None on the predicted one."""
        level = self.limit_ratio * model.slots
        if self.load == "predicted":
            return None
        return RelayOnBusy(open_at_turns=level, close_at_turns=level, refuses=True)
