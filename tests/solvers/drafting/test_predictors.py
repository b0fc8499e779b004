"""Rejection predictors: what they learn from a log with known truth, their calibration, and a
policy on them.
"""

from __future__ import annotations

import sys
from typing import get_args

import numpy as np
import pytest
from helpers.draft_logs import acceptance_probability, draft_log, ease_of
from helpers.untyped import solve
from sklearn.calibration import calibration_curve
from sklearn.metrics import log_loss

from specopt import DraftStoppingProblem, InvalidInput, MissingDependency
from specopt.models.draft_stopping.problem import AcceptanceRate, RoundClass
from specopt.models.drafting import DraftLog
from specopt.solvers.draft_stopping.replay import replay
from specopt.solvers.drafting.predictors import Kind, fit_predictor, score_bins

LOG = draft_log(3000, seed=5)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_predictors_learn_the_truth(kind: Kind) -> None:
    """Tests that each kind comes near the loss of the true probability, calibrated, and repeats
    itself by seed.
    """
    train, test = LOG.split(0.6, seed=0)
    predictor = fit_predictor(train, kind, seed=1)
    judged = test.judged
    outcomes, found = test.outcomes[judged], predictor.probability(test.features[judged])
    truth = acceptance_probability(ease_of(test.features[judged]))
    assert log_loss(outcomes, found) < log_loss(outcomes, truth) + 0.03
    shares, means = calibration_curve(outcomes, found, n_bins=10, strategy="quantile")
    assert np.abs(shares - means).mean() < (0.08 if kind == "logistic" else 0.05)
    assert (fit_predictor(train, kind, seed=1).probability(test.features[judged]) == found).all()


def test_scores_of_a_trained_predictor_foretell_fresh_rounds() -> None:
    """Tests that the estimated score bins give a policy that is as fast on fresh rounds as they
    promise.
    """
    train, test = LOG.split(0.6, seed=0)
    predictor = fit_predictor(train, "logistic")
    estimated = score_bins(predictor, test, bins=6)
    problem = DraftStoppingProblem(
        max_draft_tokens=8,
        draft_seconds_per_token=0.02,
        round_seconds=0.1,
        rounds=(
            RoundClass(
                probability=1.0, acceptance_rate=AcceptanceRate(np.array(test.acceptance_rate))
            ),
        ),
        scores=estimated.predictor,
    )
    best, window = solve(problem), solve(problem, "fixed-window")
    assert best.objective > 1.05 * window.objective

    fresh = draft_log(20_000, seed=77)
    bins = estimated.of(predictor.probability(fresh.features))
    accepted, drafted = replay(best.plan, bins, fresh.outcomes, np.full(20_000, 8))
    speed = (1.0 + accepted.mean()) / (0.1 + 0.02 * drafted.mean())
    assert speed == pytest.approx(best.objective, rel=0.03)


def test_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that without scikit-learn the message says what to install."""
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingDependency, match=r"specopt\[predict\]"):
        fit_predictor(LOG)


def test_bad_input_is_named() -> None:
    """Tests that unknown kinds, missing outcomes and wrong shapes are refused by name."""
    one_sided = DraftLog(features=np.ones((3, 1)), outcomes=np.array([1, 1, -1]))
    with pytest.raises(InvalidInput, match="first rejection"):
        fit_predictor(one_sided)
    with pytest.raises(InvalidInput, match="kind"):
        fit_predictor(LOG, "oracle")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="seed"):
        fit_predictor(LOG, seed=-1)
    predictor = fit_predictor(LOG)
    with pytest.raises(InvalidInput, match="4 columns"):
        predictor.probability(np.ones((3, 2)))
    with pytest.raises(InvalidInput, match="bins"):
        score_bins(predictor, LOG, bins=1)
