"""Fitting of runtimes to measured passes.

A fit includes prediction errors, confidence limits and warnings. The form of the runtime can be
chosen by cross-validation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from specopt.instances.runtimes.forms import FORMS, Form, Roofline
from specopt.instances.runtimes.limits import METHOD, confidence_limits
from specopt.instances.runtimes.table import RuntimeTable, words_of
from specopt.instances.runtimes.validation import (
    CrossValidation,
    FitMetrics,
    able,
    choose,
    cross_validate,
    fit_metrics,
    misfit,
    widest,
)
from specopt.instances.runtimes.work import Slope, Work
from specopt.models.arguments import integer, number, one_of, random_generator
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, dump
from specopt.models.pass_time import LinearRuntime, PiecewiseRuntime, VerificationTime
from specopt.models.pass_time.read import MIN_SECONDS_PER_TOKEN

Errors = Literal["absolute", "relative"]

MAX_CONTEXTS = 32
"""Maximum number of distinct cached-token counts that are listed in the file of a fit."""

WORTH_TELLING = 0.10
"""Relative prediction error above which a warning is issued."""

MIN_SECONDS_PER_FLOP = 1e-19
MAX_SECONDS_PER_FLOP = 1e-6
"""Range of plausible times per floating-point operation, in seconds.

Values outside the range indicate wrong units.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class RuntimeFit:
    """A runtime fitted to a table of measured passes.

    Parameters
    ----------
    form
        Form of the runtime.
    errors
        Kind of errors whose squares the fit minimised: "absolute" or "relative".
    slope
        Name of the coefficient per unit of work.
    coefficients
        Fitted coefficients, in the shape that the form defines.
    lower
        Lower confidence limits of the coefficients.
    upper
        Upper confidence limits of the coefficients.
    level
        Confidence level of the limits.
    seed
        Seed for the random cross-validation folds.
    table
        Measured passes to which the runtime was fitted.
    inputs
        Inputs of the fitted function for each pass, shape (n, inputs).
    predicted_seconds
        Predicted duration of each pass, in seconds.
    decoder
        Decoder that was used to convert tokens into operations, or that is written to the file so
        that users of the file can convert tokens into operations.
    metrics
        Prediction errors on the rows of the table.
    cross_validation
        Prediction errors on held-out inputs; None if the table has too few distinct inputs.
    warnings
        Warnings that are shown to the user.
    """

    form: Form
    errors: Errors
    slope: Slope
    coefficients: Floats
    lower: Floats
    upper: Floats
    level: float
    seed: int
    table: RuntimeTable
    inputs: Floats
    predicted_seconds: Floats
    decoder: Decoder | None
    metrics: FitMetrics
    cross_validation: CrossValidation | None
    warnings: tuple[str, ...]

    @property
    def estimator(self) -> VerificationTime:
        """Estimator for `verification-batch` problems; available only for the additive form."""
        if self.form.field != "estimator":
            raise InvalidInput(
                f"estimator: expected the additive form, got the {self.form.name} form"
            )
        return VerificationTime(**self.form.to_json(self.coefficients, self.slope))

    @property
    def runtime(self) -> LinearRuntime | PiecewiseRuntime:
        """Runtime in the form that `serving-latency` problems accept."""
        if self.slope != "seconds_per_flop" or self.form.field != "runtime":
            raise InvalidInput(
                "runtime: expected a fit against operations; fit with a model, or with x in FLOPs"
            )
        pieces = tuple(
            LinearRuntime(seconds_per_flop=slope, overhead_seconds=overhead)
            for slope, overhead in self.coefficients.tolist()
        )
        return pieces[0] if len(pieces) == 1 else PiecewiseRuntime(pieces=pieces)

    @property
    def relative_errors(self) -> Floats:
        """Relative error of each pass: the predicted time divided by the measured time, minus 1."""
        return self.predicted_seconds / self.table.seconds - 1.0

    @property
    def misfit(self) -> tuple[float, float]:
        """Minimum and maximum difference between measured and predicted times.

        Differences are relative to the predicted times and include predictions for held-out rows.
        """
        validation = self.cross_validation
        held_out = (
            (0.0, 0.0) if validation is None else validation.misfit.get(self.form.name, (0.0, 0.0))
        )
        return widest([held_out, misfit(self.predicted_seconds, self.table.seconds)])

    @property
    def ranges(self) -> dict[str, list[float]]:
        """Minimum and maximum of each input, and of the batch size if the table contains it."""
        inputs = dict(zip(self.form.input_names(self.slope), self.inputs.T, strict=True))
        if self.table.columns.batch is not None:
            inputs["batch"] = self.table.batch
        return {name: [float(column.min()), float(column.max())] for name, column in inputs.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return the fit in the form in which it is written to a file."""
        table = self.table
        validation = self.cross_validation
        worst = int(np.argmax(np.abs(self.relative_errors)))
        return {
            "form": self.form.name,
            self.form.field: self.form.to_json(self.coefficients, self.slope),
            "lower": self.form.to_json(self.lower, self.slope),
            "upper": self.form.to_json(self.upper, self.slope),
            "misfit": dict(zip(("low", "high"), self.misfit, strict=True)),
            "range": self.ranges,
            **({} if table.columns.cached is None else {"contexts": _some(table.cached)}),
            "unit": "tokens" if self.slope == "seconds_per_token" else "flops",
            **({} if self.decoder is None else {"model": dump(self.decoder)}),
            "metrics": {
                **asdict(self.metrics),
                "worst": {
                    "line": int(table.lines[worst]),
                    "x": table.inputs_at(worst),
                    "measured_seconds": float(table.seconds[worst]),
                    "predicted_seconds": float(self.predicted_seconds[worst]),
                },
            },
            "cross_validation": (
                validation
                and {
                    "folds": validation.folds,
                    "mape": {
                        name: {"mean": validation.mean(name), "folds": list(of)}
                        for name, of in validation.mape.items()
                    },
                    "reason": validation.reason,
                }
            ),
            "interval": {"level": self.level, "method": METHOD},
            "warnings": list(self.warnings),
            "source": {
                "table": table.source,
                "x": list(table.columns.x),
                "y": list(table.columns.y),
                "cached": table.columns.cached,
                "batch": table.columns.batch,
                "sum_over": table.columns.sum_over,
                "where": dict(table.columns.where),
                "repeat": table.columns.repeat,
                "repeats": dict(table.columns.repeats),
                "rows": table.rows[0],
                "rows_taken": table.rows[1],
                "errors": self.errors,
                "flat": isinstance(self.form, Roofline) and self.form.flat,
                "seed": self.seed,
            },
        }


def fit_runtime(
    table: RuntimeTable,
    work: Work,
    form: str = "auto",
    *,
    flat: bool = False,
    errors: Errors = "absolute",
    decoder: Decoder | None = None,
    level: float = 0.95,
    folds: int = 5,
    seed: int = 0,
) -> RuntimeFit:
    """Fit a runtime to measured passes.

    Coefficients are constrained to be >= 0. The fitted coefficients are globally optimal for the
    form.

    Parameters
    ----------
    table
        Measured passes.
    work
        Work of the measured passes, which is the input of the fit.
    form
        Name of a form in `FORMS`, or "auto" for the simplest form that is almost as good as the
        best form. A form is almost as good if its held-out error exceeds the minimum by at most the
        standard error of the difference over the folds, or by at most 2 % of the minimum.
    flat
        Whether the flatter line of the roofline form is a constant: max(c, a x + e).
    errors
        Whether to minimise the squares of "absolute" errors, as the papers do, or of "relative"
        errors. Relative errors suit short passes better. However, the predicted times are then too
        short on average, by about twice the variance of the relative noise, because passes that are
        fast by chance have a larger weight.
    decoder
        Decoder that is written to the file of the fit, so that users of the file can count
        operations.
    level
        Confidence level of the limits.
    folds
        Number of folds in the cross-validation; all rows with the same input are in the same fold.
    seed
        Seed for the random cross-validation folds.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or if the table has too few distinct inputs for the
        form.
    """
    one_of("form", form, ("auto", *FORMS))
    one_of("errors", errors, ("absolute", "relative"))
    integer("folds", folds, 2, 1000)
    integer("seed", seed, 0)
    number("level", level, above=0, below=1)
    if flat and form not in ("auto", Roofline.name):
        raise InvalidInput(f"flat: expected the roofline form, got {form}")
    y = table.seconds
    weights = np.ones(len(y)) if errors == "absolute" else y.min() / y
    _, groups = np.unique(table.keys, axis=0, return_inverse=True)
    forms = (Roofline(flat) if isinstance(one, Roofline) else one for one in FORMS.values())
    candidates = able(form, {one: one.inputs(work) for one in forms}, len(y))
    validation = cross_validate(
        candidates, y, weights, groups.reshape(-1), folds, random_generator(seed)
    )
    if form == "auto":
        chosen, reason = choose(candidates, validation)
    else:
        chosen = next(one for one in candidates if one.name == form)
        reason = f"{form}: as requested; {validation}"
    inputs = candidates[chosen]
    found = chosen.fit(inputs, y, weights)
    predicted = chosen.predict(found, inputs)
    if not np.isfinite(found).all() or not np.isfinite(predicted).all():
        raise InvalidInput("table: the numbers differ by too many orders of magnitude for a fit")
    limits = confidence_limits(chosen.design(found, inputs), found.ravel(), y, weights, level)
    lower, upper = (one.reshape(found.shape) for one in limits)
    fit = RuntimeFit(
        form=chosen,
        errors=errors,
        slope=work.slope,
        coefficients=found,
        lower=lower,
        upper=upper,
        level=level,
        seed=seed,
        table=table,
        inputs=inputs,
        predicted_seconds=predicted,
        decoder=None if chosen.field == "estimator" else decoder,
        metrics=fit_metrics(predicted, y),
        cross_validation=validation and replace(validation, reason=reason),
        warnings=table.warnings,
    )
    return replace(fit, warnings=(*fit.warnings, *_warnings(fit)))


def _some(values: Floats) -> list[float]:
    """Return up to `MAX_CONTEXTS` distinct values in increasing order, evenly spaced by rank."""
    distinct = np.unique(values)
    places = (
        np.linspace(0, len(distinct) - 1, min(len(distinct), MAX_CONTEXTS)).round().astype(np.int64)
    )
    return [float(one) for one in distinct[places]]


def _warnings(fit: RuntimeFit) -> list[str]:
    found = []
    off = fit.relative_errors
    worst = int(np.argmax(np.abs(off)))
    if abs(off[worst]) > WORTH_TELLING:
        at = words_of(fit.table.inputs_at(worst))
        many = int((np.abs(off) > WORTH_TELLING).sum())
        rows = f"{many} of {len(off)} rows" if many > 1 else "one row"
        found.append(
            f"the {fit.form.name} form is off by more than {WORTH_TELLING:.0%} in {rows}; the"
            f" largest error is {off[worst]:+.1%} at {at} (line {fit.table.lines[worst]})"
        )
    validation = fit.cross_validation
    if validation is not None and fit.form.name in validation.mape:
        best = min(validation.mape, key=validation.mean)
        if validation.mean(best) < 0.8 * validation.mean(fit.form.name) - 1e-4:
            found.append(
                f"the {best} form predicts held-out inputs better, with a MAPE of"
                f" {validation.mean(best):.2%} instead of {validation.mean(fit.form.name):.2%}"
            )
    if fit.form.field == "runtime":
        steepest = float(fit.coefficients[:, 0].max())
        least, most = MIN_SECONDS_PER_TOKEN, np.inf
        if fit.slope == "seconds_per_flop":
            least = MIN_SECONDS_PER_FLOP
            most = MAX_SECONDS_PER_FLOP
        if steepest == 0.0:
            found.append("the times do not grow with the work")
        elif not least <= steepest <= most:
            found.append(
                f"{fit.slope}: {steepest:.3g} is implausible for a device; check the units"
            )
    return found
