"""Errors of a fit, and cross-validation: the errors of every form on inputs that were held out, on
which the choice of a form is based.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from specopt.instances.runtimes.forms import Form
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints

NO_MATTER = 0.02
"""A simpler form is preferred if its held-out error is larger by at most this share."""

MAX_MISFIT = 1e3
"""A prediction counts as at least the measured time divided by this number, so that misfits stay
finite.
"""


@dataclass(frozen=True, kw_only=True)
class FitMetrics:
    """Differences between predictions and measurements.

    Parameters
    ----------
    r2
        Share of the variance that is explained; None if all times are equal.
    mape
        Mean absolute error relative to the measurement.
    rmse_seconds
        Root of the mean squared error.
    mae_seconds
        Mean absolute error.
    max_error_seconds
        Largest absolute error.
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
    """Compare predicted with measured seconds, which are > 0."""
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
    """Errors on inputs that were held out.

    Parameters
    ----------
    folds
        Number of parts into which the distinct inputs were split.
    mape
        Mean error relative to the measurement on each part when the form is fitted to the others,
        by form.
    misfit
        Minimum and maximum difference between measured and predicted time of a row that was held
        out, relative to the latter, by form.
    reason
        Chosen form and the reason for the choice.
    """

    folds: int
    mape: dict[str, tuple[float, ...]]
    misfit: dict[str, tuple[float, float]]
    reason: str = ""

    def mean(self, form: str) -> float:
        """Return the mean error of a form over the parts."""
        return float(np.mean(self.mape[form]))

    def __str__(self) -> str:
        means = ", ".join(f"{name} {self.mean(name):.2%}" for name in self.mape)
        return f"MAPE on held-out inputs: {means} ({self.folds} folds)"


Candidates = Mapping[Form, Floats]
"""Forms and their inputs, the simplest form first."""


def cross_validate(
    candidates: Candidates,
    y: Floats,
    weights: Floats,
    groups: Ints,
    folds: int,
    rng: np.random.Generator,
) -> CrossValidation | None:
    """Return the held-out errors of every form; None if no form can be fitted without a part.

    `rng` assigns the rows to at most `folds` parts. Rows of one group are in the same part.
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
    """Return the least and largest difference between measured and predicted times, relative to the
    latter.
    """
    apart = measured / np.maximum(predicted, measured / MAX_MISFIT) - 1.0
    return float(apart.min()), float(apart.max())


def widest(misfits: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the smallest interval that contains all of them, and 0."""
    lows, highs = zip(*misfits, strict=True)
    return min(0.0, *lows), max(0.0, *highs)


def choose(candidates: Candidates, validation: CrossValidation | None) -> tuple[Form, str]:
    """Return the simplest form that is not significantly worse than the best, and the reason."""
    if validation is None:
        form = next(iter(candidates))
        return form, f"{form.name}: too few different inputs to hold some out"
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
                "the least in error"
                if form is best
                else f"the simplest as good as {best.name} within chance"
            )
            if len(known) == 1:
                why = "the only form that the table is enough for"
            return form, f"{form.name}: {why}; {validation}"
    raise AssertionError("the best form is no worse than itself")


def able(name: str, inputs: Mapping[Form, Floats | None], rows: int) -> dict[Form, Floats]:
    """Return the forms for which the table has enough data, the simplest first.

    Raises
    ------
    InvalidInput
        If the requested form is not among them, or if there is none and the name is "auto".
    """
    given = {form: of for form, of in inputs.items() if of is not None}
    short = {form.name: text for form, of in given.items() if (text := form.lacks(of))}
    found = {form: of for form, of in given.items() if form.name not in short}
    if name == "auto":
        if not found:
            raise InvalidInput(f"table: {next(iter(short.values()))}, in {rows} rows")
    elif name in short:
        raise InvalidInput(f"form: {name}: {short[name]}, in {rows} rows")
    elif name not in (form.name for form in found):
        needs = next(form.needs for form in inputs if form.name == name)
        raise InvalidInput(f"form: the {name} one needs {needs}, the table gives none")
    return found
