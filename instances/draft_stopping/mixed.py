"""A family of easy and hard rounds that a device can distinguish only by token scores."""

from __future__ import annotations

from specopt.instances.draft_stopping.scores import normal_scores
from specopt.models.arguments import integer, number, positive
from specopt.models.draft_stopping.problem import DraftStoppingProblem, RoundClass


def mixed(
    *,
    easy: float = 0.95,
    hard: float = 0.4,
    easy_share: float = 0.5,
    signal: float = 1.0,
    after: float = 0.5,
    bins: int = 3,
    max_draft: int = 10,
    draft_seconds_per_token: float = 0.02,
    round_seconds: float = 0.15,
    seed: int = 0,
) -> DraftStoppingProblem:
    """Two classes of rounds, easy and hard, with normally distributed scores.

    Parameters
    ----------
    easy
        Acceptance rate of easy rounds.
    hard
        Acceptance rate of hard rounds.
    easy_share
        Fraction of easy rounds.
    signal
        Distance between the mean scores of accepted tokens and first rejections, in standard
        deviations.
    after
        Mean score after a rejection, on a scale from 0 (mean score of accepted tokens) to 1 (mean
        score of first rejections).
    bins
        Number B of score bins.
    max_draft
        Maximum draft length L.
    draft_seconds_per_token
        Drafting time per token, in seconds. The default describes a drafter that generates 50
        tokens per second.
    round_seconds
        Duration of a round excluding drafting, in seconds. The default describes verification over
        a network.
    seed
        Not used; the instance is deterministic.
    """
    share = round(number("easy_share", easy_share, 0, 1), 6)
    return DraftStoppingProblem(
        max_draft_tokens=integer("max_draft", max_draft, 1, 1000),
        draft_seconds_per_token=number("draft_seconds_per_token", draft_seconds_per_token, 0),
        round_seconds=positive("round_seconds", round_seconds),
        rounds=(
            RoundClass(probability=share, acceptance_rate=number("easy", easy, 0, 1)),
            RoundClass(
                probability=round(1.0 - share, 6), acceptance_rate=number("hard", hard, 0, 1)
            ),
        ),
        scores=normal_scores(
            number("signal", signal, 0, 100),
            integer("bins", bins, 1, 1000),
            number("after", after, -10, 10),
        ),
    )
