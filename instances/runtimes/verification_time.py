"""Fitting the additive estimator of verification time to measured batches (paper 2, Eq. 18-19 and App. C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specopt.models.decoder import Decoder, ExactDecoder
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Positive, check, describe
from specopt.models.verification_time import VerificationTime

COEFFICIENTS = (
    "seconds_per_new_token",
    "seconds_per_interaction",
    "seconds_per_cached_token",
    "overhead_seconds",
)
"""The order of every array of coefficients here: a, b_compute, b_read, c."""


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """How well predictions meet measurements (the rows of Table 7).

    Parameters
    ----------
    r2, adjusted_r2
        Share of the variance explained, as it is and corrected for three features; nan where undefined.
    rmse_seconds, mae_seconds, max_error_seconds
        Root mean square, mean absolute and largest error.
    mape
        Mean absolute error relative to the measurement.
    samples
        Batches.
    """

    r2: float
    adjusted_r2: float
    rmse_seconds: float
    mae_seconds: float
    mape: float
    max_error_seconds: float
    samples: int


@dataclass(frozen=True, kw_only=True, eq=False)
class VerificationTimeFit:
    """Fitted coefficients, how sure they are, and how well they predict.

    Parameters
    ----------
    coefficients
        a, b_compute, b_read, c, as `COEFFICIENTS` names them; without `non_negative` they may be negative.
    lower, upper
        Bootstrap percentile intervals of the same.
    level
        Their confidence level.
    train, test
        Metrics on the batches fitted and on those held out, if any.
    validation_r2
        R2 of each fold of the cross-validation.
    non_negative
        Whether coefficients were kept from going negative.
    """

    coefficients: Floats
    lower: Floats
    upper: Floats
    level: float
    train: Metrics
    test: Metrics | None
    validation_r2: tuple[float, ...]
    non_negative: bool

    @property
    def estimator(self) -> VerificationTime:
        """The fitted estimator.

        Raises
        ------
        InvalidInput
            If a coefficient is negative, which no estimator takes.
        """
        for name, value in zip(COEFFICIENTS, self.coefficients, strict=True):
            if value < 0.0:
                raise InvalidInput(f"{name}: fitted as {value:.3g}, expected a number >= 0; fit with non_negative=True")
        return VerificationTime(**dict(zip(COEFFICIENTS, map(float, self.coefficients), strict=True)))


def batch_features(batches: Sequence[tuple[Any, Any]]) -> Floats:
    """Return N_linear, N_interactions and N_cached of each batch (Eq. 18).

    Parameters
    ----------
    batches
        New and cached tokens of each batch's requests, as two lists of one length.

    Raises
    ------
    InvalidInput
        If a batch is empty, its lists differ in length, or a count is negative.

    Examples
    --------
    >>> batch_features([([100, 5], [0, 400])]).tolist()
    [[105.0, 12025.0, 400.0]]
    """
    rows = np.empty((len(batches), 3))
    for index, (one, other) in enumerate(batches):
        new, cached = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
        if new.ndim != 1 or new.shape != cached.shape or len(new) == 0:
            raise InvalidInput(
                f"batches[{index}]: expected two lists of one length > 0, got {new.shape}, {cached.shape}"
            )
        if not (np.isfinite(new) & np.isfinite(cached) & (new >= 0) & (cached >= 0)).all():
            raise InvalidInput(f"batches[{index}]: expected token counts >= 0, got {describe((one, other))}")
        rows[index] = new.sum(), ((cached + new) * new).sum(), cached.sum()
    return rows


def fit_verification_time(
    features: Any,
    seconds: Any,
    *,
    test: tuple[Any, Any] | None = None,
    non_negative: bool = False,
    bootstrap: int = 1000,
    level: float = 0.95,
    folds: int = 5,
    seed: int = 0,
) -> VerificationTimeFit:
    """Fit Eq. 19 by least squares.

    Parameters
    ----------
    features, seconds
        N_linear, N_interactions, N_cached of each batch, as `batch_features` gives them, and its measured time.
    test
        Features and seconds of batches that are held out.
    non_negative
        Whether to keep coefficients at 0 or above; ordinary least squares otherwise.
    bootstrap, level
        Resamples behind the intervals, and their confidence level.
    folds
        Folds of the cross-validation.
    seed
        Seed of resampling and folds.

    Raises
    ------
    InvalidInput
        If the table is malformed, too short, or its columns do not determine the coefficients.
    """
    x, y = _checked("features", "seconds", features, seconds)
    held_out = None if test is None else _checked("test[0]", "test[1]", *test)
    _integer("bootstrap", bootstrap, 1)
    _integer("folds", folds, 2)
    _integer("seed", seed, 0)
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level: expected a number > 0 and < 1, got {describe(level)}")
    if len(x) < max(5, 2 * folds):
        raise InvalidInput(f"features: expected at least {max(5, 2 * folds)} batches for {folds} folds, got {len(x)}")
    design = _design(x)
    if np.linalg.matrix_rank(design / np.maximum(np.abs(design).max(axis=0), 1e-300)) < 4:
        raise InvalidInput(
            "features: expected batches that tell the three features and a constant apart (vary new and cached tokens, "
            "cold and warm requests); the columns are linearly dependent"
        )
    found = _least_squares(design, y, non_negative)
    rng = np.random.default_rng(seed)
    samples = np.empty((bootstrap, 4))
    for row in samples:
        chosen = rng.integers(0, len(y), len(y))
        row[:] = _least_squares(design[chosen], y[chosen], non_negative)
    lower, upper = np.quantile(samples, [0.5 * (1.0 - level), 0.5 * (1.0 + level)], axis=0)
    parts = np.array_split(rng.permutation(len(y)), folds)
    validation = []
    for part in parts:
        rest = np.setdiff1d(np.arange(len(y)), part)
        fold = _least_squares(design[rest], y[rest], non_negative)
        validation.append(metrics(design[part] @ fold, y[part]).r2)
    return VerificationTimeFit(
        coefficients=found,
        lower=lower,
        upper=upper,
        level=level,
        train=metrics(design @ found, y),
        test=None if held_out is None else metrics(_design(held_out[0]) @ found, held_out[1]),
        validation_r2=tuple(validation),
        non_negative=non_negative,
    )


def metrics(predicted: Any, measured: Any) -> Metrics:
    """Compare predicted with measured times.

    Raises
    ------
    InvalidInput
        If the two differ in length, or a measurement is not positive.
    """
    p, y = np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    if p.shape != y.shape or y.ndim != 1 or len(y) == 0:
        raise InvalidInput(f"predicted: expected as many numbers as measured, {y.shape}, got {p.shape}")
    if not (y > 0.0).all():
        raise InvalidInput(f"measured: expected seconds > 0, got {describe(float(y.min()))}")
    error = p - y
    spread = float(((y - y.mean()) ** 2).sum())
    r2 = 1.0 - float((error**2).sum()) / spread if spread > 0.0 else float("nan")
    free = len(y) - 4
    return Metrics(
        r2=r2,
        adjusted_r2=1.0 - (1.0 - r2) * (len(y) - 1) / free if free > 0 else float("nan"),
        rmse_seconds=float(np.sqrt(np.mean(error**2))),
        mae_seconds=float(np.abs(error).mean()),
        mape=float(np.mean(np.abs(error) / y)),
        max_error_seconds=float(np.abs(error).max()),
        samples=len(y),
    )


# ---------------------------------------------------------------------------- regimes


@dataclass(frozen=True, kw_only=True, eq=False)
class Regimes:
    """Which term takes the time of each batch (Fig. 11).

    Parameters
    ----------
    shares
        One row per batch: shares of the linear, interaction, cached and constant terms in the predicted time.
    names
        For each batch ``"compute-bound"`` (the linear and interaction terms take clearly more than the cached one),
        ``"memory-bound"`` (clearly less), or ``"mixed"``; the paper does not define the three.
    dominant
        For each batch the index of the largest term, in the order of `COEFFICIENTS`.
    """

    shares: Floats
    names: tuple[str, ...]
    dominant: NDArray[np.int64]

    def counts(self) -> dict[str, int]:
        """Return how many batches each regime has."""
        return {name: self.names.count(name) for name in ("compute-bound", "memory-bound", "mixed")}


def regimes(estimator: VerificationTime, features: Any, *, margin: float = 0.1) -> Regimes:
    """Split the predicted time of batches by term.

    Parameters
    ----------
    estimator
        Coefficients.
    features
        As `batch_features` gives them.
    margin
        A batch is mixed where compute takes between half minus and half plus this share of what is not constant.

    Raises
    ------
    InvalidInput
        If the table is malformed, or nothing takes any time.
    """
    x = _table("features", features)
    if not 0.0 <= margin <= 0.5:
        raise InvalidInput(f"margin: expected a number >= 0 and <= 0.5, got {describe(margin)}")
    coefficients = np.array([getattr(estimator, name) for name in COEFFICIENTS])
    terms = _design(x) * coefficients
    total = terms.sum(axis=1)
    if not (total > 0.0).all():
        raise InvalidInput(
            "features: expected batches that take some time under the estimator, got one that takes none"
        )
    moving = terms[:, :3].sum(axis=1)
    compute = np.divide(terms[:, :2].sum(axis=1), moving, out=np.full(len(x), 0.5), where=moving > 0.0)
    names = tuple(
        "compute-bound" if one > 0.5 + margin else "memory-bound" if one < 0.5 - margin else "mixed" for one in compute
    )
    return Regimes(shares=terms / total[:, None], names=names, dominant=np.argmax(terms, axis=1).astype(np.int64))


# ---------------------------------------------------------------------------- roofline


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What a verifier's hardware can do at most, all devices together.

    Parameters
    ----------
    flops_per_second
        Peak rate of dense operations in the precision used.
    bytes_per_second
        Peak memory bandwidth.
    name
        Any label.
    """

    flops_per_second: Positive
    bytes_per_second: Positive
    name: str | None = None

    def __post_init__(self) -> None:
        check(self)


A100_80GB = Hardware(flops_per_second=312e12, bytes_per_second=2.039e12, name="A100 80GB SXM, BF16")
"""NVIDIA's data sheet: 312 TFLOP/s dense, 2039 GB/s."""


@dataclass(frozen=True, kw_only=True)
class RooflineRow:
    """One coefficient against the least time that the hardware needs for what it stands for.

    Parameters
    ----------
    name
        The coefficient.
    fitted, least
        Its value, and the least that the hardware can reach.
    """

    name: str
    fitted: float
    least: float

    @property
    def share_of_peak(self) -> float:
        """least / fitted: above 1 it cannot be reached; infinite where the fit is 0."""
        return self.least / self.fitted if self.fitted > 0.0 else float("inf")

    @property
    def reachable(self) -> bool:
        """Whether the hardware can do it."""
        return self.fitted >= self.least


def roofline(estimator: VerificationTime, decoder: Decoder, hardware: Hardware) -> tuple[RooflineRow, ...]:
    """Compare fitted coefficients with what peak operations and bandwidth allow, one by one.

    A new token costs its operations, a query-key interaction its attention operations (half of them in a causal block
    of new tokens: the lesser figure is taken), a cached token its bytes read, and any batch one reading of the weights.
    One coefficient below its least may be made up for by another: regression trades correlated terms. `least_seconds`
    judges whole batches, where nothing can be traded.
    """
    least = (
        decoder.flops_per_token / hardware.flops_per_second,
        0.5 * decoder.flops_per_token_pair / hardware.flops_per_second,
        decoder.kv_bytes_per_token / hardware.bytes_per_second,
        _weight_bytes(decoder) / hardware.bytes_per_second,
    )
    return tuple(
        RooflineRow(name=name, fitted=getattr(estimator, name), least=one)
        for name, one in zip(COEFFICIENTS, least, strict=True)
    )


def least_seconds(decoder: Decoder, hardware: Hardware, new_tokens: Any, cached_tokens: Any) -> float:
    """Return the least time that a batch can take: its operations at peak, or its bytes at full bandwidth.

    Operations count every new token, half of the square among new tokens, and all of their pairs with cached ones;
    bytes count the weights and the caches once.
    """
    new, cached = np.asarray(new_tokens, dtype=np.float64), np.asarray(cached_tokens, dtype=np.float64)
    pairs = float((new * cached + 0.5 * new**2).sum())
    flops = decoder.flops_per_token * float(new.sum()) + decoder.flops_per_token_pair * pairs
    moved = _weight_bytes(decoder) + decoder.kv_bytes_per_token * float(cached.sum())
    return max(flops / hardware.flops_per_second, moved / hardware.bytes_per_second)


def impossible_batches(
    estimator: VerificationTime, decoder: Decoder, hardware: Hardware, batches: Sequence[tuple[Any, Any]]
) -> tuple[int, ...]:
    """Return the indices of the batches that the estimator predicts faster than the hardware can be."""
    return tuple(
        index
        for index, (new, cached) in enumerate(batches)
        if estimator.seconds(new, cached) < least_seconds(decoder, hardware, new, cached)
    )


def _weight_bytes(decoder: Decoder) -> int:
    """Return the bytes that a forward pass must read: all weights but input embeddings of their own."""
    if isinstance(decoder, ExactDecoder) and not decoder.tied:
        return decoder.parameter_bytes - decoder.hidden * decoder.vocabulary * decoder.bytes_per_value
    return decoder.parameter_bytes


# ---------------------------------------------------------------------------- arrays


def _design(features: Floats) -> Floats:
    return np.column_stack([features, np.ones(len(features))])


def _least_squares(design: Floats, y: Floats, non_negative: bool) -> Floats:
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    if non_negative:
        from scipy.optimize import nnls

        found: Floats = nnls(design / scale, y)[0] / scale
        return found
    solved: Floats = np.linalg.lstsq(design / scale, y, rcond=None)[0] / scale
    return solved


def _table(name: str, features: Any) -> Floats:
    try:
        x = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError):
        x = np.empty(0)
    if x.ndim != 2 or x.shape[1] != 3 or len(x) == 0:
        expected = "a table of N_linear, N_interactions, N_cached"
        raise InvalidInput(f"{name}: expected {expected}, got {describe(features)}")
    if not (np.isfinite(x) & (x >= 0.0)).all():
        row = int(np.argmin((np.isfinite(x) & (x >= 0.0)).all(axis=1)))
        raise InvalidInput(f"{name}[{row}]: expected finite numbers >= 0, got {x[row].tolist()}")
    return x


def _checked(x_name: str, y_name: str, features: Any, seconds: Any) -> tuple[Floats, Floats]:
    x = _table(x_name, features)
    y = np.asarray(seconds, dtype=np.float64)
    if y.shape != (len(x),):
        raise InvalidInput(f"{y_name}: expected {len(x)} numbers, one per batch, got shape {y.shape}")
    if not (np.isfinite(y) & (y > 0.0)).all():
        row = int(np.argmin(np.isfinite(y) & (y > 0.0)))
        raise InvalidInput(f"{y_name}[{row}]: expected seconds > 0, got {y[row]}")
    return x, y


def _integer(name: str, value: object, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise InvalidInput(f"{name}: expected an integer >= {low}, got {describe(value)}")
