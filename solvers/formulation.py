"""Formulations, which express a problem as a mathematical program and convert the program's
solution to a plan.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.problem import Plan

MAX_ENTRIES = 200_000
"""Maximum number of nonzero coefficients in a program. Pyomo needs about one kilobyte for each of
them.
"""

Value = Callable[[Any], float]
"""Function that returns the value of a given variable in the solution of a program."""


@dataclass(frozen=True)
class Formulation:
    """The formulation of a problem kind as a mathematical program.

    Parameters
    ----------
    state
        Function that accepts a problem and keyword options, and returns the program. The problem's
        objective equals the program's objective times the program's attribute `unit`, plus its
        attribute `offset`.
    read
        Function that converts a solution to a plan, given the problem, the program, and a function
        that returns the value of a variable.
    is_linear
        Whether the program is a linear or mixed-integer program in Pyomo. Otherwise, it is a convex
        program in CVXPY.
    """

    state: Callable[..., Any]
    read: Callable[[Any, Any, Value], Plan]
    is_linear: bool = True


def check_size(rows: int, columns: int, entries: int) -> None:
    """Check that a program is small enough to formulate.

    Raises
    ------
    Unsupported
        If the program would have more than `MAX_ENTRIES` nonzero coefficients.
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
        If the variable has no value because the program has not been solved.
    """
    found = variable.value
    if found is None:
        raise InvalidInput(f"model: {variable.name} has no value; solve the program first")
    return float(found)
