"""Formulations: functions that express a problem as a mathematical program, and convert the
solution of the program to a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.problem import Plan

MAX_ENTRIES = 200_000
"""Maximum number of nonzero entries of a program; Pyomo needs about one kilobyte per entry."""

Value = Callable[[Any], float]
"""Function that returns the value of a variable in the solution of a program."""


@dataclass(frozen=True)
class Formulation:
    """The formulation of one problem kind as a program.

    Parameters
    ----------
    state
        Function that takes a problem and keyword options, and returns the program. The problem's
        objective equals the program's objective times the program's attribute `unit`, plus its
        attribute `offset`.
    read
        Function that takes the problem, the program and a function that returns the values of
        variables, and returns the plan.
    is_linear
        Whether the program is a linear or integer Pyomo program; otherwise, it is a CVXPY program.
    """

    state: Callable[..., Any]
    read: Callable[[Any, Any, Value], Plan]
    is_linear: bool = True


def check_size(rows: int, columns: int, entries: int) -> None:
    """Check that a program is small enough to formulate.

    Raises
    ------
    Unsupported
        If the program has more than `MAX_ENTRIES` entries.
    """
    if entries > MAX_ENTRIES:
        raise Unsupported(
            f"formulation: the program would have {rows:,} rows, {columns:,} columns and"
            f" {entries:,} entries, more than the limit of {MAX_ENTRIES:,} entries; use a smaller"
            " problem, or use `specopt solve`"
        )


def solution(variable: Any) -> float:
    """Return the value of a variable in a solved program.

    Raises
    ------
    InvalidInput
        If the variable has no value.
    """
    found = variable.value
    if found is None:
        raise InvalidInput(f"model: {variable.name} has no value; solve the program first")
    return float(found)
