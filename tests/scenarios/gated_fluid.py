"""A small scenario that several rooms search, sweep and draw from: proportional gates before a fluid pipeline."""

from __future__ import annotations

from collections.abc import Mapping

GAIN = "candidates.gate.admission.k_per_s"


def gated_fluid(
    title: str,
    gates: Mapping[str, tuple[float, float, float]],
    *,
    seed: int = 1,
    span_s: tuple[float, float] = (60.0, 220.0),
    step_s: float = 0.1,
    more: str = "",
) -> str:
    """Return a scenario's TOML: 250 slots, a dead time of 2 s, a residence of 10 s.

    Parameters
    ----------
    title : str
    gates : mapping
        Candidates by name: base rate (turns/s), gain (1/s) and set point (turns).
    seed : int
    span_s : (float, float)
        Warm-up and horizon.
    step_s : float
        Step of the plant and of the control.
    more : str
        Further top-level lines.
    """
    head = f'''title = "{title}"
question = "Which gain?"
seed = {seed}
horizon_s = {span_s[1]}
warmup_s = {span_s[0]}
workload = {{ kind = "saturated", waiting_turns = 256 }}
plant = {{ kind = "fluid", slots = 250, dead_time_s = 2.0, residence = {{ mean_s = 10.0 }}, step_s = {step_s} }}
admission = {{ max_release_per_s = 60.0 }}
control = {{ admission_period_s = {step_s} }}
{more}
'''
    return head + "".join(
        f'''[[candidates]]
name = "{name}"
admission = {{ kind = "proportional_gate", base_per_s = {base}, k_per_s = {gain}, setpoint_turns = {setpoint} }}
'''
        for name, (base, gain, setpoint) in gates.items()
    )
