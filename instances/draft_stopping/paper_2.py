"""A family with one class of rounds and the binary predictor of paper 2."""

from __future__ import annotations

import numpy as np

from specopt.instances.draft_stopping.scores import as_probabilities
from specopt.models.arguments import integer, number, positive
from specopt.models.draft_stopping.problem import DraftStoppingProblem, RoundClass
from specopt.models.drafting import Scores
from specopt.models.fields import Floats


def paper_2(
    *,
    acceptance_rate: float = 0.73,
    false_accept: float = 0.425,
    false_reject: float = 0.1989,
    goes_on_after: float | None = None,
    max_draft: int = 8,
    draft_seconds_per_token: float = 0.02,
    round_seconds: float = 0.15,
    seed: int = 0,
) -> DraftStoppingProblem:
    """The binary predictor of paper 2, Table 10, for windows of up to 8 tokens.

    The paper does not report the duration of a round, so the default is an assumption.

    Parameters
    ----------
    acceptance_rate
        Acceptance rate alpha per token. With the default, a window of 8 tokens has the accepted
        fraction that Table 5 reports.
    false_accept
        Probability that the predictor returns "accepted" at a first rejection.
    false_reject
        Probability that the predictor returns "rejected" at an accepted token.
    goes_on_after
        Probability that the predictor returns "accepted" after a rejection. The paper does not
        report this probability; None means the same probability as at the first rejection.
    max_draft
        Maximum draft length.
    draft_seconds_per_token
        Drafting time per token, in seconds. The default is an assumption.
    round_seconds
        Duration of a round excluding drafting, in seconds. The default is an assumption.
    seed
        Not used; the instance is deterministic.
    """
    false_accept = number("false_accept", false_accept, 0, 1)
    after = false_accept if goes_on_after is None else number("goes_on_after", goes_on_after, 0, 1)
    rate = number("acceptance_rate", acceptance_rate, 0, 1)

    def bits(accepted: float) -> Floats:
        return as_probabilities(np.array([1.0 - accepted, accepted]))

    return DraftStoppingProblem(
        max_draft_tokens=integer("max_draft", max_draft, 1, 1000),
        draft_seconds_per_token=number("draft_seconds_per_token", draft_seconds_per_token, 0),
        round_seconds=positive("round_seconds", round_seconds),
        rounds=(RoundClass(probability=1.0, acceptance_rate=rate),),
        scores=Scores(
            accepted=bits(1.0 - number("false_reject", false_reject, 0, 1)),
            first_rejection=bits(false_accept),
            after=bits(after),
        ),
    )
