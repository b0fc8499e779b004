"""A cutting-plane method with a trust region for maximising a concave, piecewise linear function
over a product of simplices.

The function f is a minimum of linear functions, one for each path in a graph. An evaluation at
weights w therefore returns a value and a gradient G that define a cut: f(w') <= <G, w'> for all w'.
A linear program over the cuts, restricted to a box around the best weights so far, proposes the
next point. This is a stabilised version of Kelley's method. HiGHS starts each program from the
previous solution.
"""

from __future__ import annotations

import highspy
import numpy as np

from specopt.models.fields import Floats
from specopt.models.result import Termination
from specopt.solvers.highs import Highs
from specopt.solvers.solver_status import termination_of


class CuttingPlanes:
    """A cutting-plane model that proposes the next weights from the values and gradients at earlier
    weights.

    Parameters
    ----------
    weights
        Initial weights, with shape (S, M). Every row sums to 1.
    scale
        Typical magnitude of the function values, used to scale the linear program.
    """

    def __init__(self, weights: Floats, scale: float) -> None:
        self.best = -np.inf
        self.center = weights
        self.promised = np.inf  # value of the last proposal in the program
        self._radius = 0.3
        self._misses = 0
        self._scale = scale
        rows, columns = weights.shape
        self._size = rows * columns
        self._model = Highs()
        self._model.addVars(self._size, np.zeros(self._size), np.ones(self._size))
        self._model.addVar(-highspy.kHighsInf, highspy.kHighsInf)
        self._model.changeColCost(self._size, -1.0)
        places, ones = np.arange(self._size, dtype=np.int32), np.ones(self._size)
        self._model.addRows(
            rows, ones[:rows], ones[:rows], self._size, places[::columns], places, ones
        )

    def learn(self, weights: Floats, value: float, gradient: Floats) -> None:
        """Add the cut f(w') <= <G, w'> from an evaluation at `weights`. If the value is the best so
        far, centre the trust region at these weights.
        """
        row = np.append(-gradient.ravel() / self._scale, 1.0)
        columns = np.arange(self._size + 1, dtype=np.int32)
        self._model.addRow(-highspy.kHighsInf, 0.0, self._size + 1, columns, row)
        if value > self.best:
            if value - self.best > 0.3 * (self.promised - self.best):
                self._radius = min(1.0, 1.5 * self._radius)
            self.best, self.center, self._misses = value, weights, 0
        else:
            self._misses += 1
            if self._misses == 3:
                self._radius *= 0.6
                self._misses = 0

    def propose(self) -> Floats | None:
        """Return the weights to evaluate next, or None if the model predicts only a negligible
        gain.
        """
        low = np.maximum(0.0, self.center - self._radius).ravel()
        high = np.minimum(1.0, self.center + self._radius).ravel()
        self._model.changeColsBounds(self._size, np.arange(self._size, dtype=np.int32), low, high)
        self._model.run()
        if termination_of(self._model.getModelStatus()) is not Termination.CONVERGED:
            return None
        solution = np.array(self._model.getSolution().col_value)
        self.promised = solution[-1] * self._scale
        if self.promised - self.best < 1e-5 * abs(self.best):
            return None
        weights = np.maximum(solution[:-1], 0.0).reshape(self.center.shape)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))
