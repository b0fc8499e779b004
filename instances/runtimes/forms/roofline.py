"""The roofline form, which is the maximum of two lines.

One line is flat or nearly flat and describes passes that are limited by memory. The other line is
steeper and describes passes that are limited by computation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.instances.runtimes.forms.form import Form, nonnegative_least_squares
from specopt.instances.runtimes.work import Slope
from specopt.models.fields import Floats, Ints

MAX_SPLITS = 2000
"""Maximum number of breakpoints that a fit tries.

If a table has more distinct values, evenly spaced breakpoints are tried.
"""

POLISHED = 8
"""Number of breakpoints for which the lines are fitted accurately.

These are the breakpoints with the smallest errors in a first fit, which uses normal equations.
"""


@dataclass(frozen=True)
class Roofline(Form):
    """The form T = max(slope_1 x + overhead_1, slope_2 x + overhead_2), slope_1 <= slope_2.

    The input x is the work of a pass, and the coefficients have shape (2, 2).

    The maximum of two lines follows the flatter line up to some x_k and the steeper line from the
    next value x_k+1. For a given k, these functions are the linear combinations, with coefficients
    >= 0, of 1, x and two hinge functions. The first hinge function equals x_k up to x_k and x
    beyond. The second hinge function equals x_k+1 up to x_k and x beyond. Each k thus requires a
    least-squares fit with four coefficients >= 0, and the fit for the best k is the global optimum.
    Alternating between assigning passes to lines and fitting the lines would not guarantee the
    global optimum.

    Parameters
    ----------
    flat
        Whether the flatter line is a constant: max(c, a x + e).
    """

    name = "roofline"
    flat: bool = False

    @property
    def least_distinct(self) -> int:  # type: ignore[override]
        """Minimum number of distinct inputs for a fit, which is one more than the number of
        coefficients.
        """
        return 4 if self.flat else 5

    def fit(self, inputs: Floats, seconds: Floats, weights: Floats) -> Floats:
        """Return the optimal coefficients; see `Form.fit`."""
        x = inputs[:, 0]
        levels, where = np.unique(x, return_inverse=True)
        many = len(levels) - 1  # number of possible splits, some of which are tried
        splits = np.unique(np.linspace(0, many - 1, min(many, MAX_SPLITS)).round().astype(np.int64))
        errors = self._screen(levels / levels[-1], where, seconds, weights, splits)
        candidates = splits[np.argsort(errors, kind="stable")[:POLISHED]]
        found = [self._at(k, levels, where, x, seconds, weights) for k in candidates]
        return min(found, key=lambda one: one[1])[0]

    def design(self, coefficients: Floats, inputs: Floats) -> Floats:
        """Return the derivatives of the predictions with respect to the coefficients; see
        `Form.design`.

        Each row contains x and 1 in the columns of the larger line, and 0 elsewhere.
        """
        x = inputs[:, 0]
        times = np.multiply.outer(x, coefficients[:, 0]) + coefficients[:, 1]
        on = np.eye(len(coefficients))[np.argmax(times, axis=1)]
        return np.stack([on * x[:, None], on], axis=2).reshape(len(x), -1)

    def formula(self, work: str) -> str:
        """Return the form's formula as a string."""
        return f"roofline, T = max({'c' if self.flat else f'a1 {work} + c1'}, a2 {work} + c2)"

    def coefficient_names(self, slope: Slope) -> tuple[str, ...]:
        """Return the names of the coefficients."""
        return tuple(
            f"piece {piece}, {name}" for piece in (1, 2) for name in (slope, "overhead_seconds")
        )

    def to_json(self, coefficients: Floats, slope: Slope) -> dict[str, Any]:
        """Return the coefficients as a runtime with two pieces."""
        return {
            "pieces": [{slope: row[0], "overhead_seconds": row[1]} for row in coefficients.tolist()]
        }

    def _at(
        self, k: int, levels: Floats, where: Ints, x: Floats, seconds: Floats, weights: Floats
    ) -> tuple[Floats, float]:
        """Return the best two lines that cross between level k and the next level.

        The second item of the result is the sum of squared errors.
        """
        low = levels[k]
        high = levels[k + 1]
        flatter = where <= k
        columns = [np.ones_like(x), np.where(flatter, low, x), np.where(flatter, high, x)]
        if not self.flat:
            columns.append(x)
        design = np.column_stack(columns) * weights[:, None]
        found, error = nonnegative_least_squares(design, seconds * weights)
        constant, first, second = found[:3]
        slope = 0.0 if self.flat else found[3]
        pieces = [
            [slope, constant + first * low + second * high],
            [slope + first + second, constant],
        ]
        return np.array(pieces), error

    def _screen(
        self, levels: Floats, where: Ints, seconds: Floats, weights: Floats, splits: Ints
    ) -> Floats:
        """Return the minimum sum of squared errors for each split.

        The errors are computed from normal equations. Cumulative sums over the rows yield these
        equations for all splits.
        """
        y = seconds * weights
        # scale the columns to similar sizes, because squaring loses half of the digits
        y, weights = (y / np.abs(y).max(), weights / weights.max())
        rows = np.column_stack([weights, weights * levels[where], y])
        squares = np.zeros((len(levels), 3, 3))
        np.add.at(squares, where, rows[:, :, None] * rows[:, None, :])
        below = np.cumsum(squares, axis=0)[splits]
        above = np.cumsum(squares[::-1], axis=0)[::-1][splits + 1]
        # the columns 1, two hinges, x and y in terms of 1, x and y, below and above the split
        left = np.zeros((len(splits), 3, 5))
        left[:, 0, 0], left[:, 0, 1], left[:, 0, 2] = 1.0, levels[splits], levels[splits + 1]
        left[:, 1, 3] = left[:, 2, 4] = 1.0
        right = np.array([[1.0, 0, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]])
        gram = left.transpose(0, 2, 1) @ below @ left + right.T @ above @ right
        values, vectors = np.linalg.eigh(gram)
        roots = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(
            0, 2, 1
        )  # roots^T roots = gram
        used = [0, 1, 2] if self.flat else [0, 1, 2, 3]
        return np.array([nonnegative_least_squares(root[:, used], root[:, 4])[1] for root in roots])
