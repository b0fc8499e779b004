"""The linear form, which is the runtime model of paper 1."""

from __future__ import annotations

from specopt.instances.runtimes.forms.form import Form
from specopt.instances.runtimes.work import Slope
from specopt.models.fields import Floats


class Linear(Form):
    """The form T = slope x + overhead (paper 1, Eq. 17), in which x is the work of a pass.

    The coefficients have shape (1, 2).
    """

    name = "linear"
    least_distinct = 2

    def fit(self, inputs: Floats, seconds: Floats, weights: Floats) -> Floats:
        """Return the optimal coefficients; see `Form.fit`."""
        return super().fit(inputs, seconds, weights)[None, :]

    def formula(self, work: str) -> str:
        """Return the form's formula as a string."""
        return f"linear, T = c1 {work} + c2"

    def coefficient_names(self, slope: Slope) -> tuple[str, ...]:
        """Return the names of the coefficients."""
        return slope, "overhead_seconds"
