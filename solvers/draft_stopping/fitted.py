"""Draft stopping from a log of rounds: fit a predictor, derive a problem, and replay its plans.

The rounds of the log are split into three parts. The first part trains the predictor, and the
second determines the distribution of its scores. Both parts determine the acceptance rate at each
position. Plans are replayed on the third part, which is not used for fitting.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from specopt.models.arguments import integer
from specopt.models.draft_stopping.problem import (
    AcceptanceRate,
    DraftStoppingPlan,
    DraftStoppingProblem,
    RoundClass,
    RoundSeconds,
)
from specopt.models.drafting import ACCEPTED, FIRST_REJECTION, DraftLog
from specopt.models.errors import InvalidInput
from specopt.models.fields import Floats, Ints
from specopt.solvers.draft_stopping.replay import replay, seconds_of
from specopt.solvers.drafting.predictors import (
    Kind,
    RejectionPredictor,
    ScoreBins,
    check_outcomes,
    fit_predictor,
    score_bins,
)
from specopt.solvers.simulation import Estimate

HELD_OUT = 1.0 / 3.0
FEWEST_ROUNDS = 30


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedStopping:
    """A trained predictor, the problem derived from its scores, and the held-out rounds.

    Parameters
    ----------
    problem
        Derived problem, with a single class of rounds and an acceptance rate for each position.
        Separate classes of easy and hard rounds would not improve the plan.
    predictor, bins
        Trained predictor of rejections, and the bins that convert its probabilities into scores.
    false_accept, false_reject, area
        Accuracy of the predictor on the held-out rounds: the share of first rejections predicted as
        accepted, the share of accepted tokens predicted as rejected, and the area under the ROC
        curve. A token is predicted as accepted if its probability of acceptance exceeds 1/2.
    rounds, dropped
        Number of rounds used, and number of rounds dropped because they drafted too few tokens.
    """

    problem: DraftStoppingProblem
    predictor: RejectionPredictor
    bins: ScoreBins
    false_accept: float
    false_reject: float
    area: float
    rounds: int
    dropped: int
    _scores: Ints = field(repr=False)
    _outcomes: Ints = field(repr=False)

    def play(self, plan: DraftStoppingPlan) -> tuple[Ints, Floats]:
        """Return the number of tokens and the duration of each held-out round under a plan.

        Durations are in seconds. The replay is deterministic.
        """
        sizes = np.full(len(self._outcomes), self.problem.max_draft_tokens)
        accepted, drafted = replay(plan, self._scores.ravel(), self._outcomes.ravel(), sizes)
        return 1 + accepted, seconds_of(self.problem, drafted)

    def speed(self, plan: DraftStoppingPlan) -> Estimate:
        """Return a plan's throughput on the held-out rounds, in tokens per second."""
        return Estimate.ratio(*self.play(plan))

    def gain(self, plan: DraftStoppingPlan, rival: DraftStoppingPlan) -> tuple[float, float, float]:
        """Return the relative gain in speed of a plan over a rival, with 95 % confidence limits.

        The two plans are replayed on the same held-out rounds, and the limits use the paired
        rounds.
        """
        (mine, my_seconds), (its, its_seconds) = self.play(plan), self.play(rival)
        ours, theirs = float(mine.sum() / my_seconds.sum()), float(its.sum() / its_seconds.sum())
        # delta method for the logarithm of the ratio of two ratios
        spread = (
            mine / mine.mean()
            - my_seconds / my_seconds.mean()
            - its / its.mean()
            + its_seconds / its_seconds.mean()
        )
        half = 1.96 * float(spread.std(ddof=1)) / math.sqrt(len(spread))
        middle = math.log(ours / theirs)
        return math.exp(middle) - 1.0, math.exp(middle - half) - 1.0, math.exp(middle + half) - 1.0


def fit_stopping(
    log: DraftLog,
    *,
    draft_seconds_per_token: float,
    round_seconds: float | RoundSeconds,
    max_draft_tokens: int | None = None,
    predictor: Kind = "logistic",
    bins: int = 8,
    seed: int = 0,
) -> FittedStopping:
    """Fit a predictor to a log of rounds and derive a problem from it.

    Parameters
    ----------
    log
        Log of drafted tokens, ordered within each round.
    draft_seconds_per_token, round_seconds
        Duration of drafting one token, and duration of the rest of a round, both in seconds. The
        duration of the rest is a number, or a sequence of numbers by draft length, starting at 0.
    max_draft_tokens
        Maximum draft length L. The default is the median draft length of the rounds in the log.
        Rounds with fewer drafted tokens are dropped.
    predictor
        Type of predictor: ``"logistic"``, ``"perceptron"`` or ``"trees"``.
    bins
        Maximum number of score bins.
    seed
        Seed for the random split of the log and for the training.

    Raises
    ------
    InvalidInput
        If too few rounds have `max_draft_tokens` tokens, or an argument is outside its domain.
    MissingDependency
        If scikit-learn is not installed.
    """
    assert log.rounds is not None
    lengths = np.bincount(np.unique(log.rounds, return_inverse=True)[1])
    most = (
        int(np.median(lengths))
        if max_draft_tokens is None
        else integer("max_draft_tokens", max_draft_tokens, 1, 1000)
    )
    count = int((lengths >= most).sum())
    if count < FEWEST_ROUNDS:
        raise InvalidInput(
            f"max_draft_tokens: expected at least {FEWEST_ROUNDS} rounds with {most} draft"
            f" tokens, got {count}"
        )
    rest, held_out = _first(log, lengths, most).split(1.0 - HELD_OUT, seed=seed)
    training, counting = rest.split(0.5, seed=seed + 1)
    trained = fit_predictor(training, predictor, seed=seed)
    scores = score_bins(trained, counting, bins=bins)
    outcomes = rest.outcomes.reshape(-1, most)
    accepted = (outcomes == ACCEPTED).sum(axis=0) + 0.5
    judged = accepted + (outcomes == FIRST_REJECTION).sum(axis=0) + 0.5
    problem = DraftStoppingProblem(
        name=f"{predictor} predictor on {count} rounds",
        max_draft_tokens=most,
        draft_seconds_per_token=draft_seconds_per_token,
        round_seconds=round_seconds,
        rounds=(
            RoundClass(
                probability=1.0, acceptance_rate=AcceptanceRate.parse(accepted / judged, "rate")
            ),
        ),
        scores=scores.predictor,
    )
    from sklearn.metrics import roc_auc_score

    check_outcomes(held_out)
    probability = trained.probability(held_out.features)
    seen = held_out.judged
    right, sure = held_out.outcomes[seen] == ACCEPTED, probability[seen] > 0.5
    return FittedStopping(
        problem=problem,
        predictor=trained,
        bins=scores,
        false_accept=float(sure[~right].mean()),
        false_reject=float((~sure[right]).mean()),
        area=float(roc_auc_score(right, probability[seen])),
        rounds=count,
        dropped=len(lengths) - count,
        _scores=scores.of(probability).reshape(-1, most),
        _outcomes=held_out.outcomes.reshape(-1, most),
    )


def _first(log: DraftLog, lengths: Ints, most: int) -> DraftLog:
    """Return the first `most` tokens of every round with at least `most` tokens."""
    starts = np.cumsum(lengths) - lengths
    return log.select((starts[lengths >= most, None] + np.arange(most)).ravel())
