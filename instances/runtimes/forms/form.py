"""The base class of the forms that fitted runtimes can have.

A form is a set of functions with nonnegative coefficients. Near a fit, the functions are linear in
their coefficients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from specopt.instances.runtimes.work import Slope, Work
from specopt.models.fields import Floats


class Form(ABC):
    """A set of functions that predict durations, with methods that fit and name the
    coefficients.
    """

    name: ClassVar[str]
    least_distinct: int
    """Minimum number of distinct input rows that a fit requires."""
    needs: ClassVar[str] = "one column of x"
    field: ClassVar[str] = "runtime"
    """Field that contains the coefficients in the file of a fit."""

    def fit(self, inputs: Floats, seconds: Floats, weights: Floats) -> Floats:
        """Return the coefficients >= 0 that minimise the sum of (weights (prediction - seconds))^2.

        Parameters
        ----------
        inputs
            Inputs of the form, shape (n, inputs).
        seconds
            Measured durations, in seconds, shape (n,).
        weights
            Weights > 0, shape (n,).
        """
        return nonnegative_least_squares(with_ones(inputs) * weights[:, None], seconds * weights)[0]

    def design(self, coefficients: Floats, inputs: Floats) -> Floats:
        """Return the derivatives of the predictions with respect to the coefficients, shape (n, p).

        Multiplying the derivatives by the coefficients yields the predictions.
        """
        return with_ones(inputs)

    @abstractmethod
    def formula(self, work: str) -> str:
        """Return the form's formula as a string, in which `work` is the name of the input."""

    @abstractmethod
    def coefficient_names(self, slope: Slope) -> tuple[str, ...]:
        """Return the names of the coefficients, in order."""

    def to_json(self, coefficients: Floats, slope: Slope) -> dict[str, Any]:
        """Return the coefficients in the form that problems accept."""
        return dict(zip(self.coefficient_names(slope), coefficients.ravel().tolist(), strict=True))

    def input_names(self, slope: Slope) -> tuple[str, ...]:
        """Return the names of the inputs."""
        return ("tokens" if slope == "seconds_per_token" else "flops",)

    def inputs(self, work: Work) -> Floats | None:
        """Return the inputs of the fit, or None if the table does not contain them."""
        return work.total

    def lacks(self, inputs: Floats) -> str | None:
        """Return the reason why the inputs do not suffice for a fit, or None if they suffice."""
        distinct = len(np.unique(inputs, axis=0))
        if distinct < self.least_distinct:
            return f"expected at least {self.least_distinct} distinct inputs, got {distinct}"
        return None

    def predict(self, coefficients: Floats, inputs: Floats) -> Floats:
        """Return the predicted durations in seconds, shape (n,)."""
        return self.design(coefficients, inputs) @ coefficients.ravel()


def with_ones(inputs: Floats) -> Floats:
    """Return the inputs with a column of ones appended."""
    return np.column_stack([inputs, np.ones(len(inputs))])


def nonnegative_least_squares(design: Floats, y: Floats) -> tuple[Floats, float]:
    """Return the coefficients b >= 0 that minimise |design b - y|^2, and the minimum value.

    The columns and the target are scaled to a maximum of 1, because SciPy stops when the possible
    improvement is small compared with 1.
    """
    from scipy.optimize import nnls

    scale, level = (np.abs(one).max(axis=0) for one in (design, y))
    scale = np.where(scale > 0.0, scale, 1.0)
    level = float(level) or 1.0
    reduced: Floats = np.asarray(
        np.linalg.qr(np.column_stack([design / scale, y / level]), mode="r")
    )
    found, distance = nnls(reduced[:, :-1], reduced[:, -1])
    return found / scale * level, float(distance * level) ** 2
