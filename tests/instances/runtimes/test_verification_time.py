"""The fit of the verification estimator: known truth, intervals, regimes, roofline, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from specopt import ExactDecoder, InvalidInput
from specopt.instances.runtimes.verification_time import (
    A100_80GB,
    COEFFICIENTS,
    Hardware,
    batch_features,
    fit_verification_time,
    impossible_batches,
    least_seconds,
    metrics,
    regimes,
    roofline,
)
from specopt.models.verification_time import VerificationTime

TABLE_12 = VerificationTime(
    seconds_per_new_token=3.314e-5,
    seconds_per_interaction=3.450e-8,
    seconds_per_cached_token=4.620e-6,
    overhead_seconds=1.486e-2,
)
QWEN3_32B = ExactDecoder(
    layers=64, hidden=5120, ffn=25600, heads=64, kv_heads=8, head_dim=128, gated=True, vocabulary=151936, tied=False
)

Batch = tuple[list[int], list[int]]


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


def test_features_predict_what_the_estimator_predicts() -> None:
    """Tests that the features of a batch times the coefficients are the estimator's time (Eq. 18-19)."""
    batches, exact = measured(20, 0.0, 0)
    coefficients = np.array([getattr(TABLE_12, name) for name in COEFFICIENTS])
    x = batch_features(batches)
    assert x @ coefficients[:3] + coefficients[3] == pytest.approx(exact)


@pytest.mark.parametrize("non_negative", [False, True])
def test_fit_recovers_the_truth(non_negative: bool) -> None:
    """Tests that exact times give back exact coefficients, and noisy ones intervals that cover them."""
    batches, exact = measured(123, 0.0, 1)
    found = fit_verification_time(batch_features(batches), exact, bootstrap=50, non_negative=non_negative)
    for name in COEFFICIENTS:
        assert getattr(found.estimator, name) == pytest.approx(getattr(TABLE_12, name), rel=1e-8)
    assert found.train.r2 == pytest.approx(1.0)

    batches, noisy = measured(123, 0.05, 2)
    fresh, unseen = measured(50, 0.05, 3)
    test = (batch_features(fresh), unseen)
    found = fit_verification_time(batch_features(batches), noisy, test=test, non_negative=non_negative)
    assert found.test is not None and found.test.samples == 50
    assert found.train.samples == 123 and len(found.validation_r2) == 5
    assert min(*found.validation_r2, found.test.r2, found.train.adjusted_r2) > 0.9
    assert abs(found.train.r2 - found.test.r2) < 0.05
    assert (found.lower <= found.coefficients).all() and (found.coefficients <= found.upper).all()
    truth = np.array([getattr(TABLE_12, name) for name in COEFFICIENTS])
    assert ((found.lower <= truth) & (truth <= found.upper)).sum() >= 3
    again = fit_verification_time(batch_features(batches), noisy, test=test, non_negative=non_negative)
    assert (again.lower == found.lower).all() and again.validation_r2 == found.validation_r2


def test_negative_coefficients() -> None:
    """Tests that a negative fit is told, and that the non-negative option avoids it."""
    batches, _ = measured(60, 0.0, 4)
    x = batch_features(batches)
    seconds = np.maximum(3e-5 * x[:, 0] + 4e-8 * x[:, 1] - 1e-6 * x[:, 2] + 0.05, 1e-3)
    free = fit_verification_time(x, seconds, bootstrap=10)
    assert free.coefficients.min() < 0.0
    with pytest.raises(InvalidInput, match="non_negative"):
        _ = free.estimator
    assert fit_verification_time(x, seconds, bootstrap=10, non_negative=True).coefficients.min() >= 0.0


def test_metrics_by_hand() -> None:
    """Tests that the metrics of Table 7 are right on five numbers."""
    found = metrics([1.0, 2.0, 3.0, 5.0, 5.0], [1.0, 2.0, 4.0, 4.0, 5.0])
    assert found.rmse_seconds == pytest.approx(np.sqrt(0.4))
    assert found.mae_seconds == pytest.approx(0.4)
    assert found.mape == pytest.approx(0.1)
    assert found.max_error_seconds == 1.0
    assert found.r2 == pytest.approx(1 - 2 / 10.8)
    assert found.adjusted_r2 == pytest.approx(1 - (2 / 10.8) * 4)


def test_regimes() -> None:
    """Tests that cold batches are compute-bound and long caches memory-bound, and that shares sum to 1."""
    batches: list[Batch] = [([1500], [0]), ([1], [2000]), ([20, 800], [1900, 0])]
    found = regimes(TABLE_12, batch_features(batches))
    assert found.names[:2] == ("compute-bound", "memory-bound")
    assert found.shares.sum(axis=1) == pytest.approx(1.0)
    assert sum(found.counts().values()) == 3
    assert COEFFICIENTS[found.dominant[0]] == "seconds_per_interaction"


def test_roofline_flags_what_an_a100_cannot_reach() -> None:
    """Tests that both published coefficient sets beat an A100 on cold batches, and that honest ones do not."""
    cold: list[Batch] = [([length], [0]) for length in (150, 300, 600, 1200)]
    rows = {row.name: row for row in roofline(TABLE_12, QWEN3_32B, A100_80GB)}
    assert not rows["seconds_per_new_token"].reachable
    assert rows["seconds_per_new_token"].share_of_peak > 5
    assert not rows["overhead_seconds"].reachable  # one reading of 65 GB takes 32 ms
    assert rows["seconds_per_cached_token"].reachable
    assert impossible_batches(TABLE_12, QWEN3_32B, A100_80GB, cold) == (0, 1, 2, 3)
    printed = VerificationTime(
        seconds_per_new_token=143.39e-6,
        seconds_per_interaction=2.53e-9,
        seconds_per_cached_token=2.67e-6,
        overhead_seconds=0.0,
    )
    assert impossible_batches(printed, QWEN3_32B, A100_80GB, cold) == (0, 1, 2, 3)
    slow = VerificationTime(
        seconds_per_new_token=4e-4, seconds_per_interaction=1e-8, seconds_per_cached_token=1e-6, overhead_seconds=0.04
    )
    assert all(row.reachable for row in roofline(slow, QWEN3_32B, A100_80GB))
    assert impossible_batches(slow, QWEN3_32B, A100_80GB, cold) == ()
    free = Hardware(flops_per_second=1e30, bytes_per_second=1e30)
    assert least_seconds(QWEN3_32B, free, [10], [10]) < 1e-12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.ones((20, 2))}, "features"),
        ({"features": np.ones((20, 3))}, "linearly dependent"),
        ({"seconds": np.ones(3)}, "seconds"),
        ({"seconds": np.zeros(20)}, r"seconds\[0\]"),
        ({"features": -np.ones((20, 3))}, r"features\[0\]"),
        ({"bootstrap": 0}, "bootstrap"),
        ({"folds": 1}, "folds"),
        ({"folds": 15}, "30 batches"),
        ({"level": 1.0}, "level"),
        ({"seed": -1}, "seed"),
        ({"test": (np.ones((2, 3)), np.ones(3))}, r"test\[1\]"),
    ],
)
def test_bad_tables_are_refused(change: dict[str, Any], message: str) -> None:
    """Tests that a malformed table or option is refused with its name."""
    batches, seconds = measured(20, 0.01, 5)
    arguments: dict[str, Any] = {"features": batch_features(batches), "seconds": seconds, "bootstrap": 2} | change
    with pytest.raises(InvalidInput, match=message):
        fit_verification_time(**arguments)


def test_bad_batches_are_refused() -> None:
    """Tests that empty, ragged and negative batches are refused with their place."""
    for batch in (([], []), ([1], [1, 2]), ([-1], [0])):
        with pytest.raises(InvalidInput, match=r"batches\[1\]"):
            batch_features([([1], [1]), batch])
    with pytest.raises(InvalidInput, match="predicted"):
        metrics([1.0], [1.0, 2.0])
    with pytest.raises(InvalidInput, match="measured"):
        metrics([1.0], [0.0])
    with pytest.raises(InvalidInput, match="margin"):
        regimes(TABLE_12, [[1.0, 1.0, 1.0]], margin=1.0)
