"""Tests of the regression with random effects."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from specopt.solvers.speculation_table.tuning.regression import Law, Regression, Term

LINE = Term(1.0, lambda a, b: 1.0 + a["x"] * b["x"], spread=0.0)
BUMP = Term(0.3, lambda a, b: np.exp(-0.5 * (a["x"] - b["x"]) ** 2))


def _records(x: np.ndarray) -> np.ndarray:
    return np.array([(value,) for value in x], dtype=[("x", "f8")])


def _example() -> tuple[Regression, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.uniform(0.0, 5.0, 30)
    y = 1.0 + 0.5 * x + np.sin(x) + rng.normal(0.0, 0.05, 30)
    return Regression([LINE, BUMP], _records(x), y, np.ones(30), 0.1), x, y


def test_predictions_are_conditional_normals() -> None:
    """Tests that mean and variance are those of the joint normal distribution, computed by
    partitioned matrices.
    """
    fitted, x, y = _example()
    new = np.array([0.7, 6.0])
    both = _records(np.concatenate((new, x)))
    gram = 1.0 + np.outer(both["x"], both["x"])
    gram = gram + fitted.scales[1] ** 2 * np.exp(
        -0.5 * np.subtract.outer(both["x"], both["x"]) ** 2
    )
    gram += fitted.noise**2 * np.eye(32)
    solved = np.linalg.solve(gram[2:, 2:], np.column_stack((y - y.mean(), gram[2:, :2])))
    mean, variance = fitted.predict(_records(new))
    assert mean == pytest.approx(y.mean() + gram[:2, 2:] @ solved[:, 0], abs=1e-6)
    assert variance == pytest.approx(np.diag(gram[:2, :2] - gram[:2, 2:] @ solved[:, 1:]), abs=1e-6)


def test_scales_are_most_probable() -> None:
    """Tests that no other scales near the fitted ones have a larger posterior density."""
    fitted, x, y = _example()

    def density(bump: float, noise: float) -> float:
        gram = (
            1.0
            + np.outer(x, x)
            + bump**2 * np.exp(-0.5 * np.subtract.outer(x, x) ** 2)
            + noise**2 * np.eye(30)
        )
        surprise = (np.log([bump / 0.3, noise / 0.1]) / [1.5, 1.0]) ** 2
        return float(multivariate_normal(cov=gram).logpdf(y - y.mean()) - 0.5 * surprise.sum())

    best = density(fitted.scales[1], fitted.noise)
    for factors in ((1.05, 1.0), (0.95, 1.0), (1.0, 1.05), (1.0, 0.95)):
        assert density(fitted.scales[1] * factors[0], fitted.noise * factors[1]) < best


BEND = Law(lambda a, unknown: np.exp(unknown[0] * a["x"]), np.array([0.2]), np.array([0.3]))


def test_what_is_held_out_is_predicted_by_the_rest() -> None:
    """Tests that the closed form is the normal distribution of some observations, given all
    others.
    """
    fitted, x, y = _example()
    hidden = np.array([0, 11, 29])
    keep = np.setdiff1d(np.arange(30), hidden)
    gram = (
        1.0 + np.outer(x, x) + fitted.scales[1] ** 2 * np.exp(-0.5 * np.subtract.outer(x, x) ** 2)
    )
    gram += fitted.noise**2 * np.eye(30)
    solved = np.linalg.solve(
        gram[np.ix_(keep, keep)], np.column_stack((y[keep] - y.mean(), gram[keep][:, hidden]))
    )
    mean, variance = fitted.held_out(hidden)
    assert mean == pytest.approx(y.mean() + gram[hidden][:, keep] @ solved[:, 0], abs=1e-5)
    assert variance == pytest.approx(
        np.diag(gram[np.ix_(hidden, hidden)] - gram[hidden][:, keep] @ solved[:, 1:]), rel=1e-4
    )


def test_a_law_is_found_and_extrapolates() -> None:
    """Tests that a curve far outside the observations is predicted by its law, and missed without
    it.
    """
    x = np.linspace(0.0, 2.0, 12)
    y = 3.0 + np.exp(0.5 * x) + np.random.default_rng(1).normal(0.0, 0.01, 12)
    bump = Term(0.05, BUMP.covariance)
    alone, law = (
        Regression([LINE, bump], _records(x), y, np.ones(12), 0.01, law=law)
        for law in (Law(lambda a, unknown: np.zeros(len(a)), np.empty(0), np.empty(0)), BEND)
    )
    truth = 3.0 + np.exp(0.5 * 4.0)
    assert law.predict(_records(np.array([4.0])))[0][0] == pytest.approx(truth, abs=0.5)
    assert abs(alone.predict(_records(np.array([4.0])))[0][0] - truth) > 1.0


def test_a_law_of_unsure_parameters_widens_predictions() -> None:
    """Tests that variances hold what the parameters of the law are not sure of, as a line about the
    fitted ones.
    """
    x, y = np.array([0.0, 1.0]), np.array([1.0, 1.22])
    fitted = Regression(
        [Term(1.0, lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape)), spread=0.0)],
        _records(x),
        y,
        np.ones(2),
        0.1,
        sure=1e-3,
        law=BEND,
    )
    slope = {at: float(at * np.exp(fitted.parameters[0] * at)) for at in (0.0, 1.0, 3.0)}
    gram = {(a, b): 1.0 + 0.09 * slope[a] * slope[b] for a in slope for b in slope}
    known = np.array(
        [[gram[a, b] for b in (0.0, 1.0)] for a in (0.0, 1.0)]
    ) + fitted.noise**2 * np.eye(2)
    cross = np.array([gram[3.0, b] for b in (0.0, 1.0)])
    expected = gram[3.0, 3.0] - cross @ np.linalg.solve(known, cross) + fitted.noise**2
    assert fitted.predict(_records(np.array([3.0])))[1][0] == pytest.approx(expected, rel=1e-4)


def test_more_runs_of_a_point_make_it_surer() -> None:
    """Tests that a mean of many runs pulls the prediction closer than a single run does."""
    x, y = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    once = Regression([LINE], _records(x), y, np.ones(5), 0.3, sure=1e-3)
    often = Regression(
        [LINE], _records(x), y, np.array([1.0, 1.0, 100.0, 1.0, 1.0]), 0.3, sure=1e-3
    )
    assert often.predict(_records(x[2:3]))[0][0] > 1.5 * once.predict(_records(x[2:3]))[0][0]
