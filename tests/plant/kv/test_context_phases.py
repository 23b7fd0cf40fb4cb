"""A kept context moves by its transition table alone, and no step loses or invents a byte of any tier."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import settings

from orchestrator.turn import WorkerId
from plant.kv.context import (
    AT_REST,
    DEMOTING,
    DRAINING,
    GONE,
    PHASE_NAMES,
    STAGING,
    TRANSITIONS,
    WAITING,
    Context,
    IllegalPhase,
)
from plant.kv.spec import NETWORK, SSD
from tests.paths import ROOT
from tests.plant.kv.context_life import SESSIONS, ContextLife
from tests.plant.kv.world import Session

TestContextLife = ContextLife.TestCase
TestContextLife.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


def test_a_long_storm_of_moves_conserves_every_byte() -> None:
    """Chance alone seldom demotes, pins and loses one context in turn: a long seeded storm does."""
    chance, life = Random(20261001), ContextLife()
    reached: set[tuple[str, str]] = set()
    for _ in range(1500):
        which, private = chance.randrange(40), chance.randrange(900)
        session, coin = chance.randrange(SESSIONS), chance.random() < 0.5
        rules: tuple[tuple[float, Callable[[], None]], ...] = (
            (5.0, partial(life.fill, session, chance.randint(1, 6), private, chance.randrange(2), coin, private)),
            (2.0, partial(life.append, session, chance.randint(1, 6), private)),
            (2.0, partial(life.suffix, which, private)),
            (8.0, partial(life.move, which, chance.randint(1, 3))),
            (1.0, partial(life.halt, which, private)),
            (2.0, partial(life.evict, chance.choice((NETWORK, SSD)), chance.randint(1, 30))),
            (1.0, partial(life.compact, session, chance.randrange(12), coin, chance.random() < 0.5)),
            (1.0, partial(life.pin, which)),
            (1.0, partial(life.unpin, which) if life.readers else lambda: None),
            (1.0, partial(life.lose, which)),
            (1.0, partial(life.rebuild, which, private, coin) if life.lost else lambda: None),
        )
        chance.choices([act for _, act in rules], [weight for weight, _ in rules])[0]()
        life.bytes_of_every_tier_are_those_that_the_phases_say()
        life.each_context_stands_once_in_the_queue_of_its_home()
        life.nodes_hold_what_is_on_its_way_through_them()
        life.nothing_that_a_reader_relies_on_is_given_up()
        for context in life.ledger.contexts.values():
            reached |= set(pairwise(context.story()))
        if max(len(session.ids) for session in life.sessions) > 60:
            life.compact(max(range(SESSIONS), key=lambda k: len(life.sessions[k].ids)), 5, False, False)
    life.teardown()
    legal = {(PHASE_NAMES[a], PHASE_NAMES[b]) for a, after in TRANSITIONS.items() for b in after if b != GONE}
    assert reached == legal


def test_a_refused_move_tells_the_contexts_story() -> None:
    context = Context(7, Session(7).grow(3), 3, WorkerId(0))
    for phase in (STAGING, WAITING, DRAINING, AT_REST, DEMOTING):
        context.enter(phase)
    story = "at rest -> staging -> waiting -> draining -> at rest -> demoting"
    with pytest.raises(IllegalPhase, match=f"context 7 may not go from demoting to staging; its story: {story}; busy"):
        context.enter(STAGING)
    for _ in range(20):
        context.enter(AT_REST)
        context.enter(DRAINING)
    assert context.story() == ["draining", "at rest"] * 4 + ["draining"]


def test_what_is_gone_stays_gone() -> None:
    assert GONE not in TRANSITIONS
    assert all(GONE not in after or before == AT_REST for before, after in TRANSITIONS.items())


OWNERS = {"context.py": None, "context_ledger.py": None, "lru_queues.py": {"stamp", "kind"}}
"""Who may write which fields of a context; None: any."""


def writes(tree: ast.Module) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        targets: list[Any] = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            yield from (part for part in ast.walk(target) if isinstance(part, ast.Attribute)) if target else ()


def test_fields_of_a_context_are_written_by_their_owners_alone() -> None:
    shared = {"blocks", "node_bytes"}  # other objects have fields of these names
    fields = set(Context.__slots__) - shared
    wrong = []
    for path in sorted((ROOT / "plant").rglob("*.py")):
        if path.parent.name == "engines":  # real engines: no context of ours is there
            continue
        allowed = OWNERS.get(path.name, set()) if path.parent.name == "kv" else set()
        if allowed is None:
            continue
        for target in writes(ast.parse(path.read_text(encoding="utf-8"))):
            of_self = isinstance(target.value, ast.Name) and target.value.id == "self"
            if not of_self and target.attr in fields - allowed and isinstance(target.ctx, ast.Store):
                wrong.append(f"{path.relative_to(ROOT)}:{target.lineno}: {ast.unparse(target)}")
    assert wrong == []
