"""The additive form, which is the runtime model for batches in paper 2."""

from __future__ import annotations

import numpy as np

from specopt.instances.runtimes.forms.form import Form, with_ones
from specopt.instances.runtimes.work import Slope, Work
from specopt.models.fields import Floats
from specopt.models.pass_time import COEFFICIENTS


class Additive(Form):
    """The form T = a N_linear + b_compute N_interactions + b_read N_cached + c (Eq. 18-19).

    The coefficients have shape (4,).
    """

    name = "additive"
    least_distinct = 5
    needs = "three columns of x, or one of tokens"
    field = "estimator"

    def input_names(self, slope: Slope) -> tuple[str, ...]:
        """Return the names of the batch features, which are the inputs of the form."""
        return "new_tokens", "interactions", "cached_tokens"

    def inputs(self, work: Work) -> Floats | None:
        """Return the features of the measured batches, or None if the table lacks features."""
        return work.features

    def lacks(self, inputs: Floats) -> str | None:
        """Return the reason why the inputs do not determine a fit, or None if they determine one.

        A fit requires enough distinct inputs, and features that are linearly independent of each
        other and of a constant.
        """
        short = super().lacks(inputs)
        design = with_ones(inputs)
        if (
            short
            or np.linalg.matrix_rank(design / np.maximum(np.abs(design).max(axis=0), 1e-300)) == 4
        ):
            return short
        return (
            "expected rows that distinguish the three features and a constant (vary new and cached"
            " tokens), got columns that are linearly dependent"
        )

    def formula(self, work: str) -> str:
        """Return the form's formula as a string."""
        return "additive, T = a new + b_compute (cached + new) new + b_read cached + c"

    def coefficient_names(self, slope: Slope) -> tuple[str, ...]:
        """Return the names of the four coefficients, in order."""
        return COEFFICIENTS
