"""Runtimes fitted to measured passes: the form chosen by cross-validation, with errors, limits and warnings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from specopt.instances.runtimes.forms import Additive, Form, Linear, Roofline
from specopt.instances.runtimes.table import RuntimeTable
from specopt.instances.runtimes.verification_time import COEFFICIENTS
from specopt.instances.runtimes.work import Slope, Work
from specopt.models.decoder import Decoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints, describe, dump
from specopt.models.pass_time import LEAST_SECONDS_PER_TOKEN
from specopt.models.runtime import LinearRuntime, PiecewiseRuntime
from specopt.models.verification_time import VerificationTime

FormName = Literal["auto", "linear", "additive", "roofline"]
Errors = Literal["absolute", "relative"]
FORMS = ("linear", "roofline", "additive")
"""From the simplest on."""

WORTH_TELLING = 0.10
"""A relative error above this is warned of."""

NO_MATTER = 0.02
"""A simpler form is taken, too, where its held-out error is larger by no more than this share."""

LEAST_SECONDS_PER_FLOP = 1e-19
MOST_SECONDS_PER_FLOP = 1e-6
"""No device of today computes faster or slower: units must be wrong."""

CELLS = 4_000_000
"""Numbers that resamples may hold in memory at once."""


@dataclass(frozen=True, kw_only=True)
class FitMetrics:
    """How well a fit meets the measurements it was fitted to.

    Parameters
    ----------
    r2
        Share of the variance explained; None where all times are equal.
    mape
        Mean absolute error relative to the measurement.
    rmse_seconds, mae_seconds, max_error_seconds
        Root mean square, mean absolute and largest error.
    max_relative_error
        Largest error relative to the measurement.
    samples
        Passes.
    """

    r2: float | None
    mape: float
    rmse_seconds: float
    mae_seconds: float
    max_error_seconds: float
    max_relative_error: float
    samples: int


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """How the form was chosen.

    Parameters
    ----------
    folds
        Parts that the distinct inputs were split into.
    mape
        By form: error relative to the measurement on each part, when fitted to the others, averaged over its rows.
    reason
        Which form was taken and why.
    """

    folds: int
    mape: dict[str, tuple[float, ...]]
    reason: str

    def mean(self, form: str) -> float:
        """Return the mean over the parts."""
        return float(np.mean(self.mape[form]))


@dataclass(frozen=True, kw_only=True, eq=False)
class RuntimeFit:
    """A runtime fitted to a table.

    Parameters
    ----------
    form
        "linear", "roofline" or "additive".
    flat
        Whether the first piece of a roofline was kept constant.
    errors
        Whether squares of absolute or of relative errors were minimised.
    slope
        What the coefficient per unit of work is called.
    coefficients, lower, upper
        Slope and overhead of each piece, shape (pieces, 2), or those of `COEFFICIENTS`, shape (4,); the fit, and the
        percentiles of each over resamples of the rows (`_limits`), widened to hold the fit where they do not.
    level, resamples, seed
        Confidence level, resamples behind it, and seed of resamples and folds.
    table, inputs, predicted_seconds
        What was fitted, against what, and what the fit says of it.
    decoder
        What turned tokens into operations, or stands for them.
    metrics
        Errors in the table.
    cross_validation
        How the form was chosen; None: too few distinct inputs.
    warnings
        What a reader should know.
    """

    form: str
    flat: bool
    errors: Errors
    slope: Slope
    coefficients: Floats
    lower: Floats
    upper: Floats
    level: float
    resamples: int
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
        """The additive form as `verification-batch` takes it."""
        if self.form != "additive":
            raise InvalidInput(f"estimator: expected the additive form, got the {self.form} one")
        return VerificationTime(**_named(self.coefficients))

    @property
    def runtime(self) -> LinearRuntime | PiecewiseRuntime:
        """The runtime as `serving-latency` takes it."""
        if self.slope != "seconds_per_flop" or self.form == "additive":
            raise InvalidInput("runtime: expected a fit against operations; fit with a model, or x in FLOPs")
        pieces = tuple(LinearRuntime(**self._piece(row)) for row in self.coefficients.tolist())
        return pieces[0] if len(pieces) == 1 else PiecewiseRuntime(pieces=pieces)

    @property
    def relative_errors(self) -> Floats:
        """Prediction over measurement, less 1."""
        return self.predicted_seconds / self.table.seconds - 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the content of a fit's file."""
        table, columns = self.table, self.table.columns
        out: dict[str, Any] = {"form": self.form}
        if self.form == "additive":
            out["estimator"] = _named(self.coefficients)
            out["lower"], out["upper"] = _named(self.lower), _named(self.upper)
            out["unit"] = "tokens"
        else:
            out["runtime"] = self._runtime(self.coefficients)
            out["lower"], out["upper"] = self._runtime(self.lower), self._runtime(self.upper)
            out["unit"] = "tokens" if self.slope == "seconds_per_token" else "flops"
        if self.decoder is not None:
            out["model"] = dump(self.decoder)
        worst = int(np.argmax(np.abs(self.relative_errors)))
        out["metrics"] = {
            **{name: getattr(self.metrics, name) for name in FitMetrics.__dataclass_fields__},
            "worst": {
                "line": int(table.lines[worst]),
                "x": dict(zip(columns.numbers, _inputs_at(table, worst), strict=True)),
                "measured_seconds": float(table.seconds[worst]),
                "predicted_seconds": float(self.predicted_seconds[worst]),
            },
        }
        validation = self.cross_validation
        out["cross_validation"] = validation and {
            "folds": validation.folds,
            "mape": {name: {"mean": validation.mean(name), "folds": list(of)} for name, of in validation.mape.items()},
            "reason": validation.reason,
        }
        out["interval"] = {"level": self.level, "method": "bootstrap percentiles", "resamples": self.resamples}
        out["warnings"] = list(self.warnings)
        out["source"] = {
            "table": table.source,
            "x": list(columns.x),
            "y": list(columns.y),
            "cached": columns.cached,
            "batch": columns.batch,
            "sum_over": columns.sum_over,
            "where": dict(columns.where),
            "repeat": columns.repeat,
            "repeats": dict(columns.repeats),
            "rows": table.rows[0],
            "rows_taken": table.rows[1],
            "errors": self.errors,
            "flat": self.flat,
            "seed": self.seed,
        }
        return out

    def _piece(self, row: list[float]) -> dict[str, Any]:
        return {self.slope: row[0], "overhead_seconds": row[1]}

    def _runtime(self, coefficients: Floats) -> dict[str, Any]:
        pieces = [self._piece(row) for row in coefficients.tolist()]
        return pieces[0] if self.form == "linear" else {"pieces": pieces}


def fit_runtime(
    table: RuntimeTable,
    work: Work,
    form: FormName = "auto",
    *,
    flat: bool = False,
    errors: Errors = "absolute",
    decoder: Decoder | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    folds: int = 5,
    seed: int = 0,
) -> RuntimeFit:
    """Fit a runtime to measured passes.

    Coefficients are kept at or above 0, and are the global optimum for their form (`forms`).

    Parameters
    ----------
    table, work
        Measured passes, and their work.
    form
        One form; "auto": the simplest whose held-out error is no worse than the least by more than the standard error
        of the difference over the folds, or `NO_MATTER` of it.
    flat
        Whether the first piece of the roofline form is a constant: max(c, a x + e).
    errors
        Minimise squares of absolute errors, as the papers' fits do, or of relative ones: better for short passes, but
        too fast on average by about twice the variance of the relative noise, as what came out too fast by chance
        weighs more.
    decoder
        Goes into the fit's file, so that operations can be counted where it is used.
    resamples, level
        Bootstrap resamples behind the limits, and their confidence level.
    folds
        Folds of the cross-validation; all rows of one input are in the same one.
    seed
        Seed of resamples and folds.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or the table has too few distinct inputs for the form.
    """
    _check(form, errors, resamples, level, folds, seed)
    if flat and form not in ("auto", "roofline"):
        raise InvalidInput(f"flat: expected the roofline form, got {form}")
    y = table.seconds
    weights = np.ones(len(y)) if errors == "absolute" else y.min() / y
    _, groups = np.unique(table.keys, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    candidates = _candidates(work, flat)
    chosen, others = _able(form, candidates, len(y))
    rng = np.random.default_rng(seed)
    validation = _validate(others, candidates, y, weights, groups, folds, rng)
    if form == "auto":
        chosen, reason = _choose(list(others), validation)
    else:
        reason = f"{form}: as asked for{_told(validation)}"
    if validation is not None:
        validation = CrossValidation(folds=validation.folds, mape=validation.mape, reason=reason)
    kind, inputs = candidates[chosen]
    found = kind.fit(inputs, y, weights)
    lower, upper = _limits(kind, inputs, y, weights, found, (resamples, level), rng)
    predicted = kind.predict(found, inputs)
    if not np.isfinite(found).all() or not np.isfinite(predicted).all():
        raise InvalidInput("table: its numbers are too far apart for a fit")
    fit = RuntimeFit(
        form=chosen,
        flat=flat and chosen == "roofline",
        errors=errors,
        slope=work.slope,
        coefficients=found,
        lower=lower,
        upper=upper,
        level=level,
        resamples=resamples,
        seed=seed,
        table=table,
        inputs=inputs,
        predicted_seconds=predicted,
        decoder=None if chosen == "additive" else decoder,
        metrics=fit_metrics(predicted, y),
        cross_validation=validation,
        warnings=table.warnings,
    )
    object.__setattr__(fit, "warnings", (*fit.warnings, *_warnings(fit)))
    return fit


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


# ---------------------------------------------------------------------------- choice of the form


def _candidates(work: Work, flat: bool) -> dict[str, tuple[Form, Floats]]:
    found: dict[str, tuple[Form, Floats]] = {}
    if work.total is not None:
        found["linear"] = Linear(), work.total
        found["roofline"] = Roofline(flat), work.total
    if work.features is not None:
        found["additive"] = Additive(), work.features
    return found


def _able(form: str, candidates: dict[str, tuple[Form, Floats]], rows: int) -> tuple[str, dict[str, int]]:
    """Return the form asked for, and those that the table has enough distinct inputs for."""
    able: dict[str, int] = {}
    short: dict[str, str] = {}
    for name, (kind, inputs) in candidates.items():
        distinct = len(np.unique(inputs, axis=0))
        if distinct < kind.least_distinct:
            short[name] = f"expected at least {kind.least_distinct} different inputs for it, got {distinct}"
        elif isinstance(kind, Additive) and not kind.is_determined(inputs):
            short[name] = (
                "expected rows that tell its three features and a constant apart (vary new and cached tokens), "
                "got columns that are linearly dependent"
            )
        else:
            able[name] = distinct
    if form == "auto":
        if not able:
            raise InvalidInput(f"table: {next(iter(short.values()))}, in {rows} rows")
        return "", able
    if form not in candidates:
        needs = "three columns of x, or one of tokens" if form == "additive" else "one column of x"
        raise InvalidInput(f"form: the {form} one needs {needs}, the table gives none")
    if form not in able:
        raise InvalidInput(f"form: {form}: {short[form]}, in {rows} rows")
    return form, able


def _validate(
    able: dict[str, int],
    candidates: dict[str, tuple[Form, Floats]],
    y: Floats,
    weights: Floats,
    groups: Ints,
    folds: int,
    rng: np.random.Generator,
) -> CrossValidation | None:
    """Return held-out errors of every form; None where a part left out leaves too little."""
    many = int(groups.max()) + 1
    parts = np.array_split(rng.permutation(many), min(folds, many))
    errors: dict[str, tuple[float, ...]] = {}
    for name in able:
        kind, inputs = candidates[name]
        of: list[float] = []
        for part in parts:
            out = np.isin(groups, part)
            rest = inputs[~out]
            if len(np.unique(rest, axis=0)) < kind.least_distinct:
                break
            found = kind.fit(rest, y[~out], weights[~out])
            of.append(float(np.mean(np.abs(kind.predict(found, inputs[out]) / y[out] - 1.0))))
        else:
            errors[name] = tuple(of)
    return CrossValidation(folds=len(parts), mape=errors, reason="") if errors else None


def _choose(able: list[str], validation: CrossValidation | None) -> tuple[str, str]:
    """Return the form, and the reason."""
    known = [] if validation is None else [name for name in FORMS if name in validation.mape]
    if validation is None or not known:
        name = next(name for name in FORMS if name in able)
        return name, f"{name}: too few different inputs to hold some out"
    best = min(known, key=validation.mean)
    for name in known:
        gaps = np.array(validation.mape[name]) - np.array(validation.mape[best])
        error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 0.0
        if name == best or gaps.mean() <= max(error, NO_MATTER * validation.mean(best)) + 1e-12:
            why = "the least in error" if name == best else f"the simplest as good as {best} within chance"
            if len(known) == 1:
                why = "the only form that the table is enough for"
            return name, f"{name}: {why}{_told(validation)}"
    raise AssertionError("the best form is no worse than itself")


def _told(validation: CrossValidation | None) -> str:
    if validation is None:
        return ""
    means = ", ".join(f"{name} {validation.mean(name):.2%}" for name in FORMS if name in validation.mape)
    return f"; MAPE on held-out inputs: {means} ({validation.folds} folds)"


# ---------------------------------------------------------------------------- limits and warnings


def _limits(
    kind: Form,
    inputs: Floats,
    y: Floats,
    weights: Floats,
    found: Floats,
    how: tuple[int, float],
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return percentiles over resamples, moved outwards as Student's t is wider than the normal distribution.

    Resamples of few rows vary too little: the plain percentiles of n rows are as narrow as a normal interval with the
    variance divided by n in place of n less the coefficients.
    """
    from scipy.special import ndtr, stdtrit

    resamples, level = how
    rows = len(y)
    free = max(1, rows - found.size)
    tail = float(ndtr(-np.sqrt(rows / free) * stdtrit(free, 0.5 * (1.0 + level))))
    step = max(1, CELLS // rows)
    samples = []
    for start in range(0, resamples, step):
        many = min(step, resamples - start)
        counts = rng.multinomial(rows, np.full(rows, 1.0 / rows), many).astype(np.float64)
        samples.append(kind.resamples(inputs, y, weights, counts))
    low, high = np.quantile(np.concatenate(samples), [tail, 1.0 - tail], axis=0)
    return np.minimum(low, found), np.maximum(high, found)


def _warnings(fit: RuntimeFit) -> list[str]:
    told = []
    off = fit.relative_errors
    worst = int(np.argmax(np.abs(off)))
    if abs(off[worst]) > WORTH_TELLING:
        columns = fit.table.columns
        at = ", ".join(
            f"{name} = {value:g}" for name, value in zip(columns.numbers, _inputs_at(fit.table, worst), strict=True)
        )
        many = int((np.abs(off) > WORTH_TELLING).sum())
        rows = f"{many} of {len(off)} rows" if many > 1 else "one row"
        told.append(
            f"the {fit.form} form is off by more than {WORTH_TELLING:.0%} in {rows}, most by {off[worst]:+.1%} "
            f"at {at} (line {fit.table.lines[worst]})"
        )
    validation = fit.cross_validation
    if validation is not None and fit.form in validation.mape:
        best = min(validation.mape, key=validation.mean)
        if validation.mean(best) < 0.8 * validation.mean(fit.form) - 1e-4:
            told.append(
                f"the {best} form predicts held-out inputs better: {validation.mean(best):.2%} against "
                f"{validation.mean(fit.form):.2%}"
            )
    if fit.form != "additive":
        steepest = float(fit.coefficients[:, 0].max())
        least, most = LEAST_SECONDS_PER_TOKEN, np.inf
        if fit.slope == "seconds_per_flop":
            least, most = LEAST_SECONDS_PER_FLOP, MOST_SECONDS_PER_FLOP
        if steepest == 0.0:
            told.append("the times do not grow with the work")
        elif not least <= steepest <= most:
            told.append(f"{fit.slope}: {steepest:.3g} is no speed of a device: are the units right?")
    return told


# ---------------------------------------------------------------------------- small things


def _inputs_at(table: RuntimeTable, row: int) -> list[float]:
    columns = table.columns
    more = [of[row] for of, name in ((table.cached, columns.cached), (table.batch, columns.batch)) if name is not None]
    return [float(value) for value in (*table.x[row], *more)]


def _named(coefficients: Floats) -> dict[str, float]:
    return dict(zip(COEFFICIENTS, coefficients.tolist(), strict=True))


def _check(form: object, errors: object, resamples: object, level: object, folds: object, seed: object) -> None:
    if form not in ("auto", *FORMS):
        raise InvalidInput(f"form: expected one of auto, {', '.join(FORMS)}, got {describe(form)}")
    if errors not in ("absolute", "relative"):
        raise InvalidInput(f"errors: expected absolute or relative, got {describe(errors)}")
    for name, value, least, most in (
        ("bootstrap", resamples, 1, 100_000),
        ("folds", folds, 2, 1000),
        ("seed", seed, 0, 2**63),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidInput(f"{name}: expected an integer in {least}..{most}, got {describe(value)}")
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise InvalidInput(f"level: expected a number > 0 and < 1, got {describe(level)}")
