"""Formulations: a program that states a problem, and a function that turns its solution into a
plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.problem import Plan

MAX_ENTRIES = 200_000
"""Maximum number of entries of a program. Pyomo needs about a kilobyte for each."""

Value = Callable[[Any], float]
"""Return the value of a variable in the solution of a program."""


@dataclass(frozen=True)
class Formulation:
    """How the problems of one kind are stated as programs.

    Parameters
    ----------
    state
        Takes a problem, and options by their names, and returns the program; `unit` and `offset` of
        the program say what its objective is in the problem's unit: unit times it, plus the offset.
    read
        Takes the problem, the program and the values of its variables, and returns the plan.
    is_linear
        Whether it is a program of Pyomo with rows and columns; else one of CVXPY.
    """

    state: Callable[..., Any]
    read: Callable[[Any, Any, Value], Plan]
    is_linear: bool = True


def check_size(rows: int, columns: int, entries: int) -> None:
    """Raise if a program is too large to state.

    Raises
    ------
    Unsupported
        If it has more than `MAX_ENTRIES` entries; the message names rows and columns.
    """
    if entries > MAX_ENTRIES:
        raise Unsupported(
            f"formulation: the program would have {rows:,} rows, {columns:,} columns and"
            f" {entries:,} entries, more than the limit of {MAX_ENTRIES:,} entries; use a smaller"
            " problem, or use `specopt solve`"
        )


def solution(variable: Any) -> float:
    """Return the value of a variable in a program that was solved.

    Raises
    ------
    InvalidInput
        If it has no value.
    """
    found = variable.value
    if found is None:
        raise InvalidInput(f"model: solve the program first; {variable.name} has no value")
    return float(found)
