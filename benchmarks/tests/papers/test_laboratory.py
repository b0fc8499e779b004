"""Experiments on the laboratory's real pair: rounds replayed where the truth is known, and what is
recorded.
"""

from __future__ import annotations

import numpy as np
import pytest
from papers import paper_2, paper_3, paper_5, replay
from papers.laboratory import lines
from papers.ledger import paper

from specopt.solvers.fair_goodput.policies import Gradient

pytestmark = pytest.mark.nightly


def test_texts_that_always_or_never_accept() -> None:
    """Tests that a client whose texts accept all gets every draft and one more, and one that
    accepts none one token.
    """
    for policy in (np.full((20, 2), 3), np.tile([[1, 5], [4, 2]], (10, 1)), Gradient()):
        run = replay.replay((np.ones(7), np.zeros(11)), 6, policy, seeds=(0, 1), rounds=20)
        tokens = np.diff(run.realised, axis=1, prepend=0.0)
        assert (tokens[:, :, 0] == run.allocations[:, :, 0] + 1).all() and (
            tokens[:, :, 1] == 1
        ).all()
        assert (run.allocations.sum(axis=2) == 6).all()
        assert np.array_equal(run.realised, run.expected)
    assert run.estimates[:, -1] == pytest.approx(np.tile([1.0, 0.0], (2, 1)), abs=0.2)
    assert (run.allocations[:, -1, 0] == 6).all()


def test_replayed_rounds_have_the_rate_of_their_texts() -> None:
    """Tests that with constant rates tokens are those of the geometric law, and that estimates find
    the rates.
    """
    rates = (np.full(5, 0.5), np.full(3, 0.8))
    run = replay.replay(rates, 6, np.full((2000, 2), 3), seeds=(3, 4), rounds=2000)
    law = [sum(rate**i for i in range(4)) for rate in (0.5, 0.8)]
    assert run.expected[:, -1] / 2000 == pytest.approx(np.tile(law, (2, 1)))
    assert run.realised[:, -1] / 2000 == pytest.approx(np.tile(law, (2, 1)), rel=0.04)
    assert run.utility_curve()[-1] == pytest.approx(np.log(law).sum())
    learned = replay.replay(rates, 6, Gradient(), seeds=(0,), rounds=300)
    assert learned.estimates.mean(axis=1)[0] == pytest.approx([0.5, 0.8], abs=0.02)


def test_the_verifiers_own_token_takes_a_position() -> None:
    """Tests that a text is read on behind the verifier's token: where positions take turns one kind
    is drafted.
    """
    run = replay.replay(
        (np.array([1.0, 0.0]),), 1, np.ones((3, 1), int), seeds=tuple(range(8)), rounds=3
    )
    tokens = np.diff(run.realised[:, :, 0], axis=1, prepend=0.0)
    assert {tuple(row) for row in tokens.tolist()} == {(2.0, 2.0, 2.0), (1.0, 2.0, 2.0)}


@pytest.mark.parametrize("fixed", ["C / N in the mean", "C / N, rounded down"])
@pytest.mark.parametrize("random", ["S_i uniform, trimmed to C", "every token to a random client"])
def test_how_the_baselines_share_the_budget(fixed: str, random: str) -> None:
    """Tests that Fixed-S drafts C / N in the mean or its whole part, and that Random-S stays within
    the budget.
    """
    point, chance = {"fixed_s": fixed, "random_s": random}, np.random.default_rng(0)
    drafts = {name: paper_5.baseline(name, 8, 20, point, chance) for name in paper_5.POLICIES[1:]}
    assert np.ptp(drafts["Fixed-S"]) == (fixed == "C / N in the mean")
    assert drafts["Fixed-S"].mean() == (2.5 if fixed == "C / N in the mean" else 2.0)
    sums = drafts["Random-S"].sum(axis=1)
    assert sums.max() == 20 and (sums.min() == 20) == (random == "every token to a random client")
    assert drafts["Random-S"].mean(axis=0) == pytest.approx(
        np.full(8, drafts["Random-S"].mean()), rel=0.1
    )


def test_paper_2_takes_what_was_recorded() -> None:
    """Tests that acceptance by position and the predictor's errors are the recorded ones, cut to
    the window.
    """
    point = {one.name: one.default for one in paper("paper-2").box("table-3-real")} | {
        "recorded_window": 2
    }
    workload = paper_2._workload(point)
    (told,) = lines("rejections", temperature=1.0, predictor="perceptron", part=0)
    assert workload.acceptance_rates.tolist() == told["by_position"][:2]
    assert workload.predictor is not None
    assert workload.predictor.false_accept == 1.0 - told["specificity"]
    assert workload.predictor.false_accept_after == told["goes_on_after"]
    assert paper_2._workload(point | {"controller": "off"}).predictor is None


def test_paper_3_takes_what_was_recorded() -> None:
    """Tests that one set's laws are its line's, and that of all sets their means."""
    told = lines("laws", temperature=0.8)
    one, every = (
        paper_3.recorded_laws(0.8, (2,)),
        paper_3.recorded_laws(0.8, tuple(range(paper_3.SETS))),
    )
    assert one.rates.tolist() == next(line["rates"] for line in told if line["set"] == 2)
    assert every.lost_error == pytest.approx(np.mean([line["lost_error"] for line in told], axis=0))
    assert every.rates.shape == (len(paper_3.RESOLUTIONS), paper_3.CLASSES)
