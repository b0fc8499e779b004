"""`specopt evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from specopt.commands.shared import FOUND, NOT_FOUND, AsJson, File, print_json, read_problem, read_result
from specopt.models.errors import InvalidInput, SpecoptError


def evaluate(
    file: File,
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="A result file (JSON).")],
    as_json: AsJson = False,
) -> int:
    """Judge a plan from the problem's data alone. Exit 0: feasible, 1: violated, 2: not this problem's result."""
    from specopt.solve import verify

    problem, claimed = read_problem(file), read_result(result)
    try:
        report = verify(problem, claimed)
    except SpecoptError as error:
        raise InvalidInput(f"{result}: {error}") from None
    if as_json:
        fields = ("objective", "terms", "violations", "feasible", "matches")
        print_json({"claimed": claimed.objective, **{name: getattr(report, name) for name in fields}})
    else:
        from specopt.report import console, print_report

        print_report(problem, claimed, report, console())
    return FOUND if report.feasible else NOT_FOUND
