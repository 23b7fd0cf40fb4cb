"""`steadyflow check-policy law.py:Class`: the suite that every shipped law passes, on a law of your own."""

from __future__ import annotations

from typing import Annotated

import typer

from scenarios.build.laws.file import parsed
from scenarios.cli.common import print_json
from scenarios.cli.options import LONGEST_S


def check_policy(
    law: Annotated[str, typer.Argument(help="path/to/law.py:Class, or path/to/law.py:Class(name=value, ...).")],
    period_s: Annotated[float, typer.Option("--period-s", help="How often it acts.", min=1e-6, max=LONGEST_S)] = 0.5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Ask of a law what is asked of every shipped one; exit 1 when it fails a question.

    The file runs in processes of its own, with limits, and without clock, files or network while the law acts.

    Example: steadyflow check-policy docs/examples/my_law.py:MyLaw
    """
    from scenarios.conformance.confined import check_file

    part = parsed(law)
    checked = check_file(law, period_s)
    if as_json:
        findings = {finding.question: finding.what for finding in checked.findings}
        print_json({"law": part.law, "slot": checked.slot, "ok": checked.ok, "findings": findings})
    else:
        typer.echo(f"{part.law}: a law of the slot {checked.slot}")
        for finding in checked.findings:
            typer.echo(
                f"  {'ok  ' if finding.ok else 'FAIL'}  {finding.question}"
                + (f"\n        {finding.what}" if finding.what else "")
            )
    if not checked.ok:
        raise typer.Exit(1)
