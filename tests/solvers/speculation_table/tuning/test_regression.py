"""Tests of the regression with random effects."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from specopt.solvers.speculation_table.tuning.regression import Regression, Term

LINE = Term(1.0, lambda a, b: 1.0 + a["x"] * b["x"], learned=False)
BUMP = Term(0.3, lambda a, b: np.exp(-0.5 * (a["x"] - b["x"]) ** 2))


def _records(x: np.ndarray) -> np.ndarray:
    return np.array([(value,) for value in x], dtype=[("x", "f8")])


def _example() -> tuple[Regression, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 5.0, 30)
    y = 1.0 + 0.5 * x + np.sin(x) + rng.normal(0.0, 0.05, 30)
    return Regression([LINE, BUMP], _records(x), y, np.ones(30), 0.1), x, y


def test_predictions_are_conditional_normals() -> None:
    """Tests that mean and variance are those of the joint normal distribution, computed by partitioned matrices."""
    fitted, x, y = _example()
    new = np.array([0.7, 6.0])
    both = _records(np.concatenate((new, x)))
    gram = 1.0 + np.outer(both["x"], both["x"])
    gram = gram + fitted.scales[1] ** 2 * np.exp(-0.5 * np.subtract.outer(both["x"], both["x"]) ** 2)
    gram += fitted.noise**2 * np.eye(32)
    solved = np.linalg.solve(gram[2:, 2:], np.column_stack((y - y.mean(), gram[2:, :2])))
    mean, variance = fitted.predict(_records(new))
    assert mean == pytest.approx(y.mean() + gram[:2, 2:] @ solved[:, 0], abs=1e-6)
    assert variance == pytest.approx(np.diag(gram[:2, :2] - gram[:2, 2:] @ solved[:, 1:]), abs=1e-6)


def test_scales_are_most_probable() -> None:
    """Tests that no other scales near the fitted ones have a larger posterior density."""
    fitted, x, y = _example()

    def density(bump: float, noise: float) -> float:
        gram = 1.0 + np.outer(x, x) + bump**2 * np.exp(-0.5 * np.subtract.outer(x, x) ** 2) + noise**2 * np.eye(30)
        surprise = (np.log([bump / 0.3, noise / 0.1]) / 1.5) ** 2
        return float(multivariate_normal(cov=gram).logpdf(y - y.mean()) - 0.5 * surprise.sum())

    best = density(fitted.scales[1], fitted.noise)
    for factors in ((1.05, 1.0), (0.95, 1.0), (1.0, 1.05), (1.0, 0.95)):
        assert density(fitted.scales[1] * factors[0], fitted.noise * factors[1]) < best


def test_leaving_one_out_is_predicting_it_from_the_rest() -> None:
    """Tests that the closed form is dropping each observation in turn."""
    fitted, x, _ = _example()
    mean, variance = fitted.leave_one_out()
    for k in (0, 11, 29):
        keep = np.arange(30) != k
        alone = fitted.predict(_records(x[k : k + 1]), keep)
        assert (mean[k], variance[k]) == pytest.approx((alone[0][0], alone[1][0]), rel=1e-5)


def test_more_runs_of_a_point_make_it_surer() -> None:
    """Tests that a mean of many runs pulls the prediction closer than a single run does."""
    x, y = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    once = Regression([LINE], _records(x), y, np.ones(5), 0.3, sure=1e-3)
    often = Regression([LINE], _records(x), y, np.array([1.0, 1.0, 100.0, 1.0, 1.0]), 0.3, sure=1e-3)
    assert often.predict(_records(x[2:3]))[0][0] > 1.5 * once.predict(_records(x[2:3]))[0][0]
