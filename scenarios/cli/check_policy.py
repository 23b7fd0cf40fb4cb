"""`steadyflow check-policy law.py:Class`: the suite that every shipped law passes, on a law of your own."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from orchestrator.messages import Slot
from orchestrator.ports import Every
from scenarios.build.laws.file import class_of, made_from_file, parsed, router_from_file, slot_of
from scenarios.cli.common import print_json
from scenarios.cli.options import LONGEST_S


def check_policy(
    law: Annotated[str, typer.Argument(help="path/to/law.py:Class, or path/to/law.py:Class(name=value, ...).")],
    period_s: Annotated[float, typer.Option("--period-s", help="How often it acts.", min=1e-6, max=LONGEST_S)] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Ask of a law what is asked of every shipped one; exit 1 when it fails a question.

    Example: steadyflow check-policy docs/examples/my_law.py:MyLaw
    """
    part = parsed(law)
    slot = slot_of(class_of(part), part)
    from scenarios.conformance import kit, routers  # hypothesis, which other commands need not wait for

    every = Every(period_s=period_s)
    if slot == "routing":
        router_from_file(part)
        findings = routers.check_router(lambda: router_from_file(part))
    else:
        made_from_file(part, every)
        findings = kit.check(lambda: made_from_file(part, every), cast(Slot, slot))
    ok = all(finding.ok for finding in findings)
    if as_json:
        print_json({"law": part.law, "slot": slot, "ok": ok, "findings": {f.question: f.what for f in findings}})
    else:
        typer.echo(f"{part.law}: a law of the slot {slot}")
        for finding in findings:
            typer.echo(
                f"  {'ok  ' if finding.ok else 'FAIL'}  {finding.question}"
                + (f"\n        {finding.what}" if finding.what else "")
            )
    if not ok:
        raise typer.Exit(1)
