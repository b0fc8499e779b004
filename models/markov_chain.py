"""Transition matrices, recurrent classes and stationary distributions of finite Markov chains.

Rows that sum to 1 only up to rounding are scaled to sum to 1. The stationary distribution is
computed only from off-diagonal entries, because each diagonal entry is implied by the rest of its
row. The result is therefore accurate even if the chain rarely leaves some states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from specopt.models.arguments import is_number
from specopt.models.errors import InvalidInput
from specopt.models.fields import Custom, Floats, describe, frozen

ROW_TOLERANCE = 1e-9
"""Maximum absolute difference between 1 and the sum of a row of a transition matrix."""

BLOCK = 64
"""Number of states that `stationary_distribution` eliminates together. The number affects only the
running time.
"""


@dataclass(frozen=True, eq=False)
class TransitionMatrix(Custom):
    """Probabilities of moving from one state (row) to another (column) in one step.

    The JSON form is a list of rows.

    Parameters
    ----------
    rows
        Rows of the matrix before scaling, shape (S, S). Entries are >= 0, and each row sums to 1
        within 1e-9.
    """

    rows: Floats

    def __post_init__(self) -> None:
        rows = np.array(self.rows, np.float64)  # a copy, because the caller may change the array
        if rows.ndim != 2 or rows.shape[0] != rows.shape[1] or not len(rows):
            raise InvalidInput(
                f"rows: expected a square matrix with at least one row, got shape {rows.shape}"
            )
        wrong = ~((rows >= 0) & (rows <= 1 + ROW_TOLERANCE))
        if wrong.any():
            row, column = np.argwhere(wrong)[0].tolist()
            raise InvalidInput(
                f"rows[{row}][{column}]: expected a probability, got {rows[row, column]}"
            )
        sums = rows.sum(axis=1)
        off = np.abs(sums - 1.0) > ROW_TOLERANCE
        if off.any():
            row = int(np.argmax(off))
            raise InvalidInput(
                f"rows[{row}]: expected probabilities that sum to 1 within {ROW_TOLERANCE:g}, got"
                f" {float(sums[row])!r}"
            )
        object.__setattr__(self, "rows", frozen(rows))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def scaled(self) -> Floats:
        """Transition matrix whose rows are scaled to sum to 1, shape (S, S)."""
        scaled: Floats = self.rows / self.rows.sum(axis=1, keepdims=True)
        return scaled

    @classmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build a matrix from a list of rows or an array."""
        rows = list(data) if isinstance(data, np.ndarray) and data.ndim == 2 else data
        if not isinstance(rows, (list, tuple)) or not rows:
            raise InvalidInput(
                f"{where}: expected a list of at least one row, got {describe(data)}"
            )
        arrays = [_numbers(row, len(rows), f"{where}[{index}]") for index, row in enumerate(rows)]
        try:
            return cls(np.array(arrays))
        except InvalidInput as error:
            raise InvalidInput(where + str(error).removeprefix("rows")) from None

    def dump(self) -> list[list[float]]:
        """Return the matrix as a list of rows."""
        rows: list[list[float]] = self.rows.tolist()
        return rows

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema for the list of rows."""
        row = {
            "type": "array",
            "items": {"type": "number", "minimum": 0, "maximum": 1},
            "minItems": 1,
        }
        return {"type": "array", "items": row, "minItems": 1}


def _numbers(row: Any, size: int, where: str) -> Floats:
    """Convert a row of the matrix to an array, and raise an error if it is not a list of `size`
    numbers.
    """
    if not isinstance(row, (list, tuple, np.ndarray)):
        raise InvalidInput(f"{where}: expected a list of {size} probabilities, got {describe(row)}")
    if len(row) != size:
        raise InvalidInput(f"{where}: expected {size} entries, one per row, got {len(row)}")
    for column, value in enumerate(row):
        if not is_number(value):
            raise InvalidInput(f"{where}[{column}]: expected a probability, got {describe(value)}")
    try:
        return np.array(row, np.float64)
    except OverflowError:  # an integer too large for floating point
        raise InvalidInput(f"{where}: expected probabilities, got {describe(row)}") from None


def recurrent_classes(transition: Floats) -> list[list[int]]:
    """Return the recurrent classes of a Markov chain, each as a sorted list of state indices.

    The recurrent classes are the strongly connected components that no transition leaves.

    Parameters
    ----------
    transition
        Transition matrix, shape (S, S). Only the positions of the positive entries matter.
    """
    from scipy.sparse.csgraph import connected_components

    possible = transition > 0
    many, component = connected_components(possible, connection="strong")
    start, end = np.nonzero(possible)
    left = component[start[component[start] != component[end]]]
    closed = np.setdiff1d(np.arange(many), left)
    return sorted(np.flatnonzero(component == one).tolist() for one in closed)


def stationary_distribution(transition: Floats, recurrent: list[int]) -> Floats:
    """Return the stationary distribution of a Markov chain on one recurrent class, shape (S,).

    States are eliminated one at a time (Grassmann, Taksar and Heyman, 1985). The algorithm does not
    use subtraction, so every probability is accurate up to a few rounding errors, even for periodic
    chains and chains that mix slowly. The running time is O(S^3). Updates are applied to blocks of
    states to reduce memory traffic. BLAS is not used, because the last bits of its products depend
    on the number of threads and the processor.

    Parameters
    ----------
    transition
        Transition matrix, shape (S, S), whose rows sum to 1. The diagonal is ignored.
    recurrent
        Indices of the states in the recurrent class. All other states have probability 0.
    """
    part = transition[np.ix_(recurrent, recurrent)].copy()
    for end in range(len(part), 0, -BLOCK):
        start = max(0, end - BLOCK)
        for last in range(end - 1, max(start, 1) - 1, -1):
            leaving = part[last, :last].sum()
            part[:last, last] /= leaving
            part[start:last, :last] += np.outer(part[start:last, last], part[last, :last])
            part[:start, start:last] += np.outer(part[:start, last], part[last, start:last])
        part[:start, :start] += np.einsum(
            "ik,kj->ij", part[:start, start:end], part[start:end, :start]
        )
    weights = np.zeros(len(part))
    weights[0] = 1.0
    for state in range(1, len(part)):
        weights[state] = np.einsum("i,i->", weights[:state], part[:state, state])
    shares = np.zeros(len(transition))
    shares[recurrent] = weights / weights.sum()
    return shares
