"""What an orchestrator says of its run once it has ended, for the manifest."""

from __future__ import annotations

from typing import Any

from orchestrator.orchestrator import Orchestrator


def notes_of(orchestrator: Orchestrator) -> dict[str, Any]:  # Any: what JSON holds
    """Return the conservation equation, ticks, lost samples, reconfigurations and worker-seconds."""
    lifecycle = orchestrator.lifecycle
    return {
        "conservation": orchestrator.ledger.equation(),
        "control_ticks": orchestrator.loops.ticks,
        "samples_dropped": orchestrator.telemetry.dropped,
        "reconfigurations": {
            "count": lifecycle.flips,
            "flaps": lifecycle.flaps,
            "reversals": lifecycle.reversals,
            "refused": lifecycle.refused,
            "rolled_back": lifecycle.rolled_back,
            "drain_s": lifecycle.drain_s,
            "dead_s": lifecycle.dead_s,
            "moved_turns": orchestrator.drainer.moved_turns,
            "refilled_turns": orchestrator.drainer.refilled_turns,
        },
        "worker_seconds": orchestrator.registry.seconds(),
    }
