"""Named presets of generated workloads.

Every draw depends on (seed, session number) only: the first hundred sessions of a thousand are the same hundred.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from orchestrator.rng import mix, stream_key
from scenarios.errors import UserError, nearest
from scenarios.workloads.corpus import Conversation, Corpus
from scenarios.workloads.generate import simple
from scenarios.workloads.generate.agent import session
from scenarios.workloads.generate.prompts import AgentParams

Maker = Callable[[str, np.random.Generator], Conversation]


def _agentx(name: str, rng: np.random.Generator) -> Conversation:
    return session(name, rng, AgentParams())


def _agentx_subagents(name: str, rng: np.random.Generator) -> Conversation:
    # The AgentX corpus of 2026-06-21 publishes 1,697 sub-agent groups in 393 conversations.
    params = AgentParams(subagent_sessions_ratio=0.7, subagents_per_such_session=1_697 / 393 / 0.7)
    return session(name, rng, params)


PRESETS: dict[str, Maker] = {
    "agentx": _agentx,
    "agentx_subagents": _agentx_subagents,
    "chat": simple.chat,
    "rag": simple.rag,
    "batch": simple.batch,
}


def generate(preset: str, *, sessions: int, seed: int) -> Corpus:
    """Generate a corpus.

    Parameters
    ----------
    preset : str
        A name in `PRESETS`.
    sessions : int
        The number of conversations, >= 1.
    seed : int
        The same seed makes the same corpus, in any process.

    Raises
    ------
    UserError
        For an unknown preset.
    """
    make = PRESETS.get(preset)
    if make is None:
        known = ", ".join(PRESETS)
        raise UserError(f"preset {preset!r} is not known{nearest(preset, PRESETS)}; known: {known}")
    if sessions < 1:
        raise UserError(f"sessions = {sessions}; at least 1 was expected")
    root = stream_key(seed, f"generate.{preset}")
    conversations = [make(f"{preset}_{n:05d}", np.random.default_rng(mix(root, n))) for n in range(sessions)]
    return Corpus(name=f"{preset}, generated", format="generated", conversations=conversations, scope="local")
