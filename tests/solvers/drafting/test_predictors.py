"""Rejection predictors: what they learn from a log with known truth, their calibration, and the policies on them."""

from __future__ import annotations

import sys
from typing import get_args

import numpy as np
import pytest

from specopt import InvalidInput, MissingDependency
from specopt.instances.drafts.logs import acceptance_probability, draft_log, ease_of
from specopt.models.drafting import BinaryPredictor, DraftingSetting, DraftLog
from specopt.solvers.drafting.fixed_window import fixed_window
from specopt.solvers.drafting.operating_point import operating_points
from specopt.solvers.drafting.optimal_stopping import optimal_stopping
from specopt.solvers.drafting.policy import DraftingController
from specopt.solvers.drafting.predictors import Kind, calibration, fit_predictor, roc, score_bins

LOG = draft_log(3000, seed=5)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_predictors_learn_the_truth(kind: Kind) -> None:
    """Tests that each kind comes near the loss of the true probability, calibrated, and repeats itself by seed."""
    train, test = LOG.split(0.6, seed=0)
    predictor = fit_predictor(train, kind, seed=1)
    judged = test.judged
    outcomes, found = test.outcomes[judged], predictor.probability(test.features[judged])
    truth = calibration(acceptance_probability(ease_of(test.features[judged])), outcomes)
    report = calibration(found, outcomes)
    assert report.counts.sum() == judged.sum()
    assert report.log_loss < truth.log_loss + 0.03
    assert report.brier < truth.brier + 0.01
    assert report.expected_calibration_error < (0.08 if kind == "logistic" else 0.05)  # a line misses the curve
    assert roc(found, outcomes).area > 0.75
    assert (fit_predictor(train, kind, seed=1).probability(test.features[judged]) == found).all()


def test_the_policies_on_a_trained_predictor() -> None:
    """Tests that the estimated score bins give a policy that is as fast on fresh rounds as they promise."""
    train, test = LOG.split(0.6, seed=0)
    predictor = fit_predictor(train, "logistic")
    estimated = score_bins(predictor, test, bins=6)
    setting = DraftingSetting(
        acceptance_rate=test.acceptance_rate, most_tokens=8, seconds_per_token=0.02, overhead_seconds=0.1
    )
    best = optimal_stopping(setting, estimated.predictor)
    assert best.tokens_per_second > 1.05 * fixed_window(setting).tokens_per_second

    fresh = draft_log(20_000, seed=77)
    bins = estimated.of(predictor.probability(fresh.features)).reshape(20_000, 8).tolist()
    controller = DraftingController(best.policy, setting, estimated.predictor)
    accepted = drafted = 0
    for scores, outcomes in zip(bins, fresh.outcomes.reshape(20_000, 8).tolist(), strict=True):
        goes_on = controller.start()
        while goes_on:
            goes_on = controller.observe(scores[controller.drafted])
        drafted += controller.drafted
        accepted += outcomes[: controller.drafted].count(1)
    speed = setting.tokens_per_second(accepted / 20_000, drafted / 20_000)
    assert speed == pytest.approx(best.tokens_per_second, rel=0.03)


def test_operating_points() -> None:
    """Tests that the cut is chosen by speed, that all scores beat every cut, and that the ends are what they are."""
    train, test = LOG.split(0.6, seed=0)
    bins = score_bins(fit_predictor(train), test, bins=8)
    setting = DraftingSetting(acceptance_rate=0.73, most_tokens=8, seconds_per_token=0.02, overhead_seconds=0.2)
    found = operating_points(setting, bins.predictor)
    assert len(found.points) == 9
    first, last = found.points[0], found.points[-1]
    assert first.predictor == BinaryPredictor(false_accept=1.0, false_reject=0.0, goes_on_after=1.0)
    assert first.accuracy == pytest.approx(0.73) and last.accuracy == pytest.approx(0.27)
    assert first.first_flag.expected.drafted == 8 and last.first_flag.expected.sent == 0
    waste = [point.wasted for point in found.points]
    assert waste == sorted(waste, reverse=True)
    for point in found.points:
        assert found.fastest.first_flag.tokens_per_second >= point.first_flag.tokens_per_second
        assert found.most_accurate.accuracy >= point.accuracy
        assert found.all_scores.tokens_per_second >= point.optimal_stopping.tokens_per_second * (1 - 1e-5)
        assert point.optimal_stopping.tokens_per_second >= found.fixed_window.tokens_per_second
    # accuracy alone picks another cut here, and it is slower
    assert found.fastest.first_accepted_bin != found.most_accurate.first_accepted_bin


def test_calibration_by_hand() -> None:
    """Tests that table and scores are right on four tokens, and that equal predictions share a row."""
    found = calibration([0.2, 0.2, 0.8, 0.8], [0, 1, 1, 1], bins=2)
    assert found.predicted == pytest.approx([0.2, 0.8])
    assert found.accepted == pytest.approx([0.5, 1.0])
    assert found.counts.tolist() == [2, 2]
    assert found.brier == pytest.approx((0.04 + 0.64 + 0.04 + 0.04) / 4)
    assert found.expected_calibration_error == pytest.approx(0.25)
    assert len(calibration([0.5] * 4, [0, 1, 1, 1]).counts) == 1


def test_roc_by_hand() -> None:
    """Tests that curve and area are right on five tokens with a tie."""
    found = roc([0.9, 0.7, 0.7, 0.4, 0.1], [1, 1, 0, 1, 0])
    assert found.true_accept == pytest.approx([0, 1 / 3, 2 / 3, 1, 1])
    assert found.false_accept == pytest.approx([0, 0, 0.5, 0.5, 1])
    assert found.area == pytest.approx((1 + 1 + 0.5 + 1 + 1 + 0) / 6)


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
    with pytest.raises(InvalidInput, match="probability"):
        calibration([1.5], [1])
    with pytest.raises(InvalidInput, match="accepted"):
        calibration([0.5], [2])
    with pytest.raises(InvalidInput, match="both outcomes"):
        roc([0.5], [1])
