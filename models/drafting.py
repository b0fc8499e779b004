"""Rejection predictors that stop drafting early, and the expected number of tokens in a round.

The model follows paper 2, Sec. 3.2 and 4.1. A round drafts up to `max_tokens` tokens. Until the
first rejection, each token is accepted independently with probability alpha. Tokens drafted after
the first rejection are wasted. After each draft token, a predictor computes a score. The
distribution of the score is assumed to depend only on whether the token is accepted, is the first
rejection, or follows the first rejection.

A token must be drafted before its score is known. In Eq. 25, the first token that the predictor
expects to be rejected is not sent, although sending it would not cost any drafting time. With the
option `sends_flagged`, this token is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from specopt.models.acceptance import expected_tokens_per_step
from specopt.models.arguments import random_generator
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Checked,
    Floats,
    Immutable,
    Ints,
    Truths,
    Unit,
    Units,
    check,
    describe,
    frozen,
    required,
)

ACCEPTED, FIRST_REJECTION, AFTER = 1, 0, -1
"""Possible outcomes of a draft token in a `DraftLog`."""


# ---------------------------------------------------------------------------- predictors


@dataclass(frozen=True, kw_only=True)
class BinaryPredictor(Checked):
    """A rejection predictor that predicts either "accepted" or "rejected" for each token.

    Parameters
    ----------
    false_accept
        Probability f of predicting "accepted" at the first rejection (FPR in Table 4).
    false_reject
        Probability g of predicting "rejected" at an accepted token (1 - Rec_1).
    goes_on_after
        Probability h of predicting "accepted" after the first rejection. None means that h equals
        f, because the paper does not report h.
    """

    false_accept: Unit
    false_reject: Unit
    goes_on_after: Unit | None = None

    @property
    def after(self) -> float:
        """Probability h of predicting "accepted" after the first rejection, so that drafting
        continues.
        """
        return self.false_accept if self.goes_on_after is None else self.goes_on_after

    @property
    def scores(self) -> Scores:
        """Equivalent score distributions with two bins: bin 0 means "rejected" and bin 1 means
        "accepted".
        """
        return Scores(
            accepted=_bits(1.0 - self.false_reject),
            first_rejection=_bits(self.false_accept),
            after=_bits(self.after),
        )


@dataclass(frozen=True, kw_only=True)
class Scores(Checked):
    """Distributions of a rejection predictor's score over B bins. A larger number of bins preserves
    more information about the score.

    Parameters
    ----------
    accepted
        Probability of each bin at an accepted token. The probabilities sum to 1.
    first_rejection
        Probability of each bin at the first rejection. The probabilities sum to 1.
    after
        Probability of each bin after the first rejection. The probabilities sum to 1.
    """

    accepted: Units = required()
    first_rejection: Units = required()
    after: Units = required()

    def __post_init__(self) -> None:
        check(self)
        for name in ("accepted", "first_rejection", "after"):
            check_sum(name, getattr(self, name))

    @property
    def bins(self) -> int:
        """Number of score bins B."""
        return len(self.accepted)

    def cut(self, first_accepted_bin: int) -> BinaryPredictor:
        """Return the binary predictor that predicts "accepted" if the score is in bin
        `first_accepted_bin` or a higher bin.
        """
        return BinaryPredictor(
            false_accept=_clipped(self.first_rejection[first_accepted_bin:]),
            false_reject=_clipped(self.accepted[:first_accepted_bin]),
            goes_on_after=_clipped(self.after[first_accepted_bin:]),
        )


@dataclass(frozen=True, kw_only=True)
class ExpectedRound:
    """Expected numbers of accepted, wasted and drafted tokens in one round.

    Parameters
    ----------
    accepted
        Mean number E[N] of tokens that are sent and accepted.
    wasted
        Mean number E[W] of tokens that are sent but not accepted.
    drafted
        Mean number of draft tokens, including tokens that are drafted but not sent.
    """

    accepted: float
    wasted: float
    drafted: float

    @property
    def sent(self) -> float:
        """Mean number of tokens sent, E[K] = E[N] + E[W]."""
        return self.accepted + self.wasted


def first_flag_round(
    acceptance_rate: float,
    max_tokens: int,
    predictor: BinaryPredictor,
    *,
    sends_flagged: bool = False,
) -> ExpectedRound:
    """Return the mean numbers of tokens in a round that stops at the first predicted rejection.

    The means have closed forms (Eq. 25-26), in which f, g and h are the predictor's probabilities
    (see `BinaryPredictor`). Let p = alpha (1 - g), q = (1 - alpha) f and S(x, n) = (1 - x^n)/(1 -
    x). Then E[N] = p S(p, Kmax) and E[W] = q sum over j < Kmax of h^j S(p, Kmax - j).

    Parameters
    ----------
    acceptance_rate
        Acceptance rate alpha of each token.
    max_tokens
        Maximum draft length Kmax.
    predictor
        Rejection predictor.
    sends_flagged
        Whether to also send the token that is predicted to be rejected. In Eq. 25, this token is
        not sent.

    Examples
    --------
    >>> blind = BinaryPredictor(false_accept=1.0, false_reject=1.0, goes_on_after=0.0)
    >>> first_flag_round(0.5, 2, blind).wasted
    0.5
    """
    if not 0.0 <= acceptance_rate <= 1.0:
        raise InvalidInput(
            f"acceptance_rate: expected a number >= 0 and <= 1, got {describe(acceptance_rate)}"
        )
    f = predictor.false_accept
    g = predictor.false_reject
    h = predictor.after
    p = acceptance_rate * (1.0 - g)
    q = (1.0 - acceptance_rate) * f
    tokens = [
        expected_tokens_per_step(p, max_tokens - 1 - j) for j in range(max_tokens)
    ]  # S(p, Kmax - j), Eq. 7
    accepted = p * tokens[0]
    wasted = q * sum(h**j * of for j, of in enumerate(tokens))
    going, gone_wrong = 1.0, 0.0  # still drafting: no rejection yet, and after a rejection
    drafted = 0.0
    for _ in range(max_tokens):
        drafted += going + gone_wrong
        going, gone_wrong = going * p, going * q + gone_wrong * h
    if sends_flagged:
        accepted = acceptance_rate * tokens[0]
        wasted = drafted - accepted
    return ExpectedRound(accepted=accepted, wasted=wasted, drafted=drafted)


def check_sum(name: str, probabilities: Floats) -> None:
    """Raise an error unless probabilities sum to 1 within 1e-9. The message begins with `name`."""
    total = float(probabilities.sum())
    if abs(total - 1.0) > 1e-9:
        raise InvalidInput(
            f"{name}: expected probabilities that sum to 1, got a sum of {total:.12g}"
        )


# ---------------------------------------------------------------------------- logs


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftLog(Immutable):
    """A log of draft tokens, used to train rejection predictors.

    Parameters
    ----------
    features
        Features that the device observed for each token. Rows are tokens and columns are features.
    outcomes
        Outcome of each token: 1 for an accepted token, 0 for the first rejection in its round, and
        -1 for a token after the first rejection.
    names
        Names of the features.
    rounds
        Number of the round in which each token was drafted. `split` keeps the tokens of a round
        together. None puts every token in a separate round.
    """

    features: Floats
    outcomes: Ints
    names: tuple[str, ...] = ()
    rounds: Ints | None = None

    def __post_init__(self) -> None:
        try:
            features = np.array(self.features, np.float64)
        except (TypeError, ValueError):
            raise InvalidInput(
                f"features: expected a table of numbers, got {describe(self.features)}"
            ) from None
        if features.ndim != 2 or 0 in features.shape:
            raise InvalidInput(
                f"features: expected a table with rows and columns, got shape {features.shape}"
            )
        if not np.isfinite(features).all():
            row = int(np.argmin(np.isfinite(features).all(axis=1)))
            raise InvalidInput(
                f"features[{row}]: expected finite numbers, got {features[row].tolist()}"
            )
        outcomes = np.array(self.outcomes)
        if (
            outcomes.shape != (len(features),)
            or not np.isin(outcomes, (ACCEPTED, FIRST_REJECTION, AFTER)).all()
        ):
            raise InvalidInput(
                f"outcomes: expected {len(features)} entries, each 1, 0 or -1, got"
                f" {describe(outcomes)}"
            )
        rounds = np.arange(len(features)) if self.rounds is None else np.array(self.rounds)
        if rounds.shape != (len(features),) or rounds.dtype.kind not in "iu":
            raise InvalidInput(
                f"rounds: expected {len(features)} integers, got {describe(self.rounds)}"
            )
        if self.names and len(self.names) != features.shape[1]:
            raise InvalidInput(f"names: expected {features.shape[1]} names, got {len(self.names)}")
        for name, value in (
            ("features", features),
            ("outcomes", outcomes.astype(np.int64)),
            ("rounds", rounds.astype(np.int64)),
            ("names", tuple(self.names) or tuple(f"x{i}" for i in range(features.shape[1]))),
        ):
            object.__setattr__(self, name, frozen(value))

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def judged(self) -> Truths:
        """Boolean mask of the accepted tokens and first rejections. Predictors are trained on these
        tokens.
        """
        judged: Truths = self.outcomes != AFTER
        return judged

    @property
    def acceptance_rate(self) -> float:
        """Acceptance rate alpha, estimated as the share of accepted tokens among accepted tokens
        and first rejections.
        """
        judged = self.outcomes[self.judged]
        if not len(judged):
            raise InvalidInput(
                "outcomes: expected at least one accepted or rejected token, got none"
            )
        return float(judged.mean())

    def split(self, share: float = 0.7, *, seed: int = 0) -> tuple[DraftLog, DraftLog]:
        """Split the log into two logs at random. The first log contains the fraction `share` of the
        rounds, and the second log contains all other rounds.
        """
        if not 0.0 < share < 1.0:
            raise InvalidInput(f"share: expected a number > 0 and < 1, got {describe(share)}")
        assert self.rounds is not None
        names = np.unique(self.rounds)
        first = random_generator(seed).permutation(names)[: round(share * len(names))]
        mine = np.isin(self.rounds, first)
        if mine.all() or not mine.any():
            raise InvalidInput(f"rounds: expected enough rounds for two parts, got {len(names)}")
        return self.select(mine), self.select(~mine)

    def select(self, rows: Truths | Ints) -> DraftLog:
        """Return a log that contains only the tokens selected by a Boolean mask or by indices."""
        assert self.rounds is not None
        return replace(
            self,
            features=self.features[rows],
            outcomes=self.outcomes[rows],
            rounds=self.rounds[rows],
        )


def _bits(accepted: float) -> Floats:
    return np.array([1.0 - accepted, accepted])


def _clipped(probabilities: Floats) -> float:
    return min(1.0, max(0.0, float(probabilities.sum())))
