"""Prediction errors of fitted runtimes, and the choice of a form by cross-validation.

The choice is based on the errors of every form on held-out inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from specopt.instances.runtimes.forms import Form
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints

NO_MATTER = 0.02
"""Relative increase of the held-out error up to which a simpler form is preferred."""

MAX_MISFIT = 1e3
"""Maximum ratio of measured to predicted time.

Predicted times are increased where necessary to keep the ratio at this limit, so that misfits stay
finite.
"""


@dataclass(frozen=True, kw_only=True)
class FitMetrics:
    """Measures of the differences between predictions and measurements.

    Parameters
    ----------
    r2
        Fraction of the variance that is explained; None if all times are equal.
    mape
        Mean absolute error relative to the measurement.
    rmse_seconds
        Root mean squared error, in seconds.
    mae_seconds
        Mean absolute error, in seconds.
    max_error_seconds
        Largest absolute error, in seconds.
    max_relative_error
        Largest error relative to the measurement.
    samples
        Number of passes.
    """

    r2: float | None
    mape: float
    rmse_seconds: float
    mae_seconds: float
    max_error_seconds: float
    max_relative_error: float
    samples: int


def fit_metrics(predicted: Floats, measured: Floats) -> FitMetrics:
    """Return measures of the differences between predicted and measured durations.

    Measured durations must be > 0.
    """
    error = predicted - measured
    spread = float(((measured - measured.mean()) ** 2).sum())
    relative = np.abs(error) / measured
    level = float(np.abs(measured).max()) ** 2 * len(measured)
    return FitMetrics(
        r2=1.0 - float((error**2).sum()) / spread if spread > 1e-24 * level else None,
        mape=float(relative.mean()),
        rmse_seconds=float(np.sqrt(np.mean(error**2))),
        mae_seconds=float(np.abs(error).mean()),
        max_error_seconds=float(np.abs(error).max()),
        max_relative_error=float(relative.max()),
        samples=len(measured),
    )


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """The errors of every form on held-out inputs.

    Parameters
    ----------
    folds
        Number of folds into which the distinct inputs were split.
    mape
        Mapping from the name of each form to its mean absolute relative error on each fold. The
        error on a fold is that of a fit to all other folds.
    misfit
        Mapping from the name of each form to the minimum and maximum difference between measured
        and predicted times of held-out rows, relative to the predicted time.
    reason
        Sentence that names the chosen form and states the reason for the choice.
    """

    folds: int
    mape: dict[str, tuple[float, ...]]
    misfit: dict[str, tuple[float, float]]
    reason: str = ""

    def mean(self, form: str) -> float:
        """Return a form's mean absolute relative error, averaged over the folds."""
        return float(np.mean(self.mape[form]))

    def __str__(self) -> str:
        means = ", ".join(f"{name} {self.mean(name):.2%}" for name in self.mape)
        return f"MAPE on held-out inputs: {means} ({self.folds} folds)"


Candidates = Mapping[Form, Floats]
"""Mapping from forms to their inputs, with the simplest form first."""


def cross_validate(
    candidates: Candidates,
    y: Floats,
    weights: Floats,
    groups: Ints,
    folds: int,
    rng: np.random.Generator,
) -> CrossValidation | None:
    """Return every form's prediction errors on held-out inputs.

    The result is None if no form can be fitted when a fold is held out. `rng` assigns the rows to
    at most `folds` folds. Rows of the same group are in the same fold.
    """
    many = int(groups.max()) + 1
    parts = np.array_split(rng.permutation(many), min(folds, many))
    errors: dict[str, tuple[float, ...]] = {}
    misfits: dict[str, tuple[float, float]] = {}
    for form, inputs in candidates.items():
        of: list[float] = []
        apart = [(0.0, 0.0)]
        for part in parts:
            out = np.isin(groups, part)
            if form.lacks(inputs[~out]):
                break
            found = form.fit(inputs[~out], y[~out], weights[~out])
            predicted = form.predict(found, inputs[out])
            of.append(float(np.mean(np.abs(predicted / y[out] - 1.0))))
            apart.append(misfit(predicted, y[out]))
        else:
            errors[form.name] = tuple(of)
            misfits[form.name] = widest(apart)
    return CrossValidation(folds=len(parts), mape=errors, misfit=misfits) if errors else None


def misfit(predicted: Floats, measured: Floats) -> tuple[float, float]:
    """Return the minimum and maximum difference between measured and predicted times.

    Differences are relative to the predicted times.
    """
    apart = measured / np.maximum(predicted, measured / MAX_MISFIT) - 1.0
    return float(apart.min()), float(apart.max())


def widest(misfits: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the smallest interval that contains all given intervals and 0."""
    lows, highs = zip(*misfits, strict=True)
    return min(0.0, *lows), max(0.0, *highs)


def choose(candidates: Candidates, validation: CrossValidation | None) -> tuple[Form, str]:
    """Choose the simplest form that is not significantly worse than the best form.

    Return the form and the reason for the choice.
    """
    if validation is None:
        form = next(iter(candidates))
        return form, f"{form.name}: too few distinct inputs for cross-validation"
    known = [form for form in candidates if form.name in validation.mape]
    best = min(known, key=lambda form: validation.mean(form.name))
    for form in known:
        gaps = np.array(validation.mape[form.name]) - np.array(validation.mape[best.name])
        error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
        if (
            form is best
            or gaps.mean() <= max(error, NO_MATTER * validation.mean(best.name)) + 1e-12
        ):
            why = (
                "the form with the smallest error"
                if form is best
                else f"the simplest form whose error is not significantly above that of {best.name}"
            )
            if len(known) == 1:
                why = "the only form for which the table has enough inputs"
            return form, f"{form.name}: {why}; {validation}"
    raise AssertionError("the best form is no worse than itself")


def able(name: str, inputs: Mapping[Form, Floats | None], rows: int) -> dict[Form, Floats]:
    """Return the forms for which the table has enough data, simplest form first.

    Raises
    ------
    InvalidInput
        If the table lacks data for the form `name`, or if the name is "auto" and the table lacks
        data for every form.
    """
    given = {form: of for form, of in inputs.items() if of is not None}
    short = {form.name: text for form, of in given.items() if (text := form.lacks(of))}
    found = {form: of for form, of in given.items() if form.name not in short}
    if name == "auto":
        if not found:
            raise InvalidInput(f"table: {next(iter(short.values()))} (from {rows} rows)")
    elif name in short:
        raise InvalidInput(f"form: {name}: {short[name]} (from {rows} rows)")
    elif name not in (form.name for form in found):
        needs = next(form.needs for form in inputs if form.name == name)
        raise InvalidInput(f"form: {name} requires {needs}, which the table does not contain")
    return found
