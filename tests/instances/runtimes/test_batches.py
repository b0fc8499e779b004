"""Measured batches: the additive form fitted to their features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt import InvalidInput
from specopt.instances.runtimes.fit import RuntimeFit, fit_runtime
from specopt.instances.runtimes.table import RuntimeTable, TableColumns
from specopt.instances.runtimes.work import work_of
from specopt.measuring.measure import COLUMNS as MEASURED
from specopt.models.pass_time import COEFFICIENTS, VerificationTime, features

TABLE_12 = VerificationTime(
    seconds_per_new_token=3.314e-5,
    seconds_per_interaction=3.450e-8,
    seconds_per_cached_token=4.620e-6,
    overhead_seconds=1.486e-2,
)
Batch = tuple[list[int], list[int]]
COLUMNS = ("batch_new_tokens", "batch_interactions", "batch_cached_tokens")


def batch_features(batches: list[Batch]) -> np.ndarray[Any, Any]:
    """Features of each batch, the sums of those of its requests."""
    return np.array(
        [
            [column.sum() for column in features(np.array(new), np.array(cached))]
            for new, cached in batches
        ]
    )


def measured(count: int, noise: float, seed: int) -> tuple[list[Batch], np.ndarray[Any, Any]]:
    """Cold, warm and mixed batches, and their time under Table 12 with relative noise."""
    rng = np.random.default_rng(seed)
    batches: list[Batch] = []
    for index in range(count):
        size = int(rng.integers(1, 9))
        cold = np.array([index % 3 == 0 or (index % 3 == 2 and i % 2 == 0) for i in range(size)])
        new = np.where(cold, rng.integers(100, 800, size), rng.integers(1, 20, size))
        cached = np.where(cold, 0, rng.integers(200, 2000, size))
        batches.append((new.tolist(), cached.tolist()))
    exact = np.array([TABLE_12.seconds(np.array(new), np.array(cached)) for new, cached in batches])
    return batches, exact * (1.0 + noise * rng.standard_normal(count))


def fitted(batches: list[Batch], seconds: Any, **options: Any) -> RuntimeFit:
    """Fit the additive form to measured batches."""
    count = len(batches)
    table = RuntimeTable(
        columns=TableColumns(x=COLUMNS, y=("seconds",)),
        x=batch_features(batches),
        cached=np.zeros(count),
        batch=np.ones(count),
        seconds=np.asarray(seconds),
        lines=np.arange(1, count + 1),
        source="batches",
        rows=(count, count),
        warnings=(),
    )
    return fit_runtime(table, work_of(table), "additive", **options)


def test_features_predict_what_the_estimator_predicts() -> None:
    """Tests that the features of a batch times the coefficients are the estimator's time (Eq.
    18-19).
    """
    batches, exact = measured(20, 0.0, 0)
    coefficients = np.array([getattr(TABLE_12, name) for name in COEFFICIENTS])
    x = batch_features(batches)
    assert x @ coefficients[:3] + coefficients[3] == pytest.approx(exact)
    assert set(COLUMNS) < set(MEASURED)


@pytest.mark.parametrize("errors", ["absolute", "relative"])
def test_fit_recovers_the_truth(errors: str) -> None:
    """Tests that exact times give back exact coefficients, and noisy ones errors and limits near
    the noise.
    """
    found = fitted(*measured(123, 0.0, 1), errors=errors)
    for name in COEFFICIENTS:
        assert getattr(found.estimator, name) == pytest.approx(getattr(TABLE_12, name), rel=1e-8)
    assert found.metrics.r2 == pytest.approx(1.0)

    batches, noisy = measured(123, 0.05, 2)
    found = fitted(batches, noisy, errors=errors)
    assert found.metrics.r2 is not None and found.metrics.r2 > 0.9
    assert found.metrics.samples == 123
    assert found.cross_validation is not None and found.cross_validation.mean("additive") < 0.06
    fresh, unseen = measured(50, 0.05, 3)
    predicted = found.form.predict(found.coefficients, batch_features(fresh))
    assert np.mean(np.abs(predicted / unseen - 1.0)) < 0.06
    assert (found.lower <= found.coefficients).all() and (found.coefficients <= found.upper).all()
    truth = np.array([getattr(TABLE_12, name) for name in COEFFICIENTS])
    assert ((found.lower <= truth) & (truth <= found.upper)).sum() >= 3


def test_coefficients_are_not_negative() -> None:
    """Tests that times that fall with the cached tokens give a coefficient of 0, with a limit of
    0.
    """
    batches, _ = measured(60, 0.0, 4)
    x = batch_features(batches)
    found = fitted(
        batches, np.maximum(3e-5 * x[:, 0] + 4e-8 * x[:, 1] - 1e-6 * x[:, 2] + 0.05, 1e-3)
    )
    assert found.coefficients[2] == found.lower[2] == 0.0
    assert found.estimator.seconds_per_cached_token == 0.0


def test_dependent_features_are_refused() -> None:
    """Tests that batches whose features are linearly dependent are refused."""
    with pytest.raises(InvalidInput, match="linearly dependent"):
        fitted([([i], [i]) for i in range(1, 9)], np.ones(8))
