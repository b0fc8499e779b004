"""Rounding of the numbers in problems, which makes instance files short and identical on every
machine.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from specopt.models.markov_chain import TransitionMatrix
from specopt.models.problem import Problem

DIGITS = 6
"""Number of significant digits that are kept.

With more digits, the last bits of exp and log would make instances differ between machines.
"""


def rounded(problem: Problem) -> Problem:
    """Return a problem with every noninteger number rounded to six significant digits.

    Rows of transition matrices still sum to 1.
    """
    data = {name: _rounded(value) for name, value in problem.to_dict().items() if name != "name"}
    for entry in fields(problem):
        value = getattr(problem, entry.name)
        if isinstance(value, TransitionMatrix):
            data[entry.name] = [_row(row) for row in value.rows.tolist()]
    return type(problem).from_dict(data)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return value


def _row(row: list[float]) -> list[float]:
    """Round a row of a transition matrix to six decimals.

    The largest entry absorbs the rounding error of the sum.
    """
    whole = np.round(np.array(row) * 10**DIGITS).astype(np.int64)
    whole[int(np.argmax(whole))] += 10**DIGITS - int(whole.sum())
    return [int(part) / 10**DIGITS for part in whole]
