"""Rejection predictors trained on logged tokens: logistic regression, a small perceptron, boosted
trees.

They are trained on accepted tokens and first rejections only, as the verifier judges nothing behind
those (paper 2, App. B). How good they are is said by calibration and by the token speed that
follows (`draft-stopping`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from specopt.models.arguments import integer, one_of
from specopt.models.drafting import ACCEPTED, AFTER, FIRST_REJECTION, DraftLog, Scores
from specopt.models.errors import InvalidInput, MissingDependency
from specopt.models.fields import MAX_TOKENS, Floats, Ints, describe

Kind = Literal["logistic", "perceptron", "trees"]


@dataclass(frozen=True, kw_only=True, eq=False)
class RejectionPredictor:
    """A trained predictor: features in, probability of acceptance out.

    Parameters
    ----------
    kind
        ``"logistic"``, ``"perceptron"`` or ``"trees"``.
    features
        Names of the features, in order.
    model
        The scikit-learn estimator.
    """

    kind: Kind
    features: tuple[str, ...]
    model: Any = field(repr=False)

    def probability(self, features: Any) -> Floats:
        """Return the probability that each token is accepted.

        Raises
        ------
        InvalidInput
            If the table has another number of columns than the log had.
        """
        table = np.asarray(features, np.float64)
        if table.ndim != 2 or table.shape[1] != len(self.features):
            expected = f"a table with {len(self.features)} columns ({', '.join(self.features)})"
            raise InvalidInput(f"features: expected {expected}, got shape {table.shape}")
        found: Floats = self.model.predict_proba(table)[:, 1]
        return found

    @property
    def coefficients(self) -> dict[str, float] | None:
        """Of a logistic regression, what the log-odds of acceptance are a sum of, on the features
        as they come.
        """
        if self.kind != "logistic":
            return None
        scaler, regression = self.model[0], self.model[1]
        slopes = regression.coef_[0] / scaler.scale_
        at_zero = float(regression.intercept_[0] - slopes @ scaler.mean_)
        return {"intercept": at_zero, **dict(zip(self.features, slopes.tolist(), strict=True))}


def fit_predictor(log: DraftLog, kind: Kind = "logistic", *, seed: int = 0) -> RejectionPredictor:
    """Train a predictor on the judged tokens of a log.

    Parameters
    ----------
    log
        Logged tokens; both outcomes must occur.
    kind
        ``"logistic"`` regression, a ``"perceptron"`` with layers of 32 and 16, or gradient-boosted
        ``"trees"``.
    seed
        Seed of the training.

    Raises
    ------
    InvalidInput
        If the kind is unknown or an outcome is missing.
    MissingDependency
        If scikit-learn is not installed.
    """
    one_of("kind", kind, get_args(Kind))
    seed = integer("seed", seed, 0, 2**32 - 1)  # scikit-learn takes no more
    _check_outcomes(log)
    outcomes = log.outcomes[log.judged]
    model = _untrained(kind, len(outcomes), seed)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # a perceptron that stops at its last epoch is judged by its calibration
        model.fit(log.features[log.judged], outcomes)
    return RejectionPredictor(kind=kind, features=log.names, model=model)


def _check_outcomes(log: DraftLog) -> None:
    for outcome, word in ((ACCEPTED, "accepted token"), (FIRST_REJECTION, "first rejection")):
        if not (log.outcomes == outcome).any():
            raise InvalidInput(f"outcomes: expected at least one {word}, got none")


def _edges(probability: Floats, bins: int) -> Floats:
    """Return the probabilities between bins of equally many tokens; equal ones share a bin."""
    return np.unique(np.quantile(probability, np.linspace(0.0, 1.0, bins + 1)[1:-1]))


def _untrained(kind: Kind, rows: int, seed: int) -> Any:
    try:
        from sklearn.ensemble import GradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise MissingDependency(
            "predictors need scikit-learn: pip install 'specopt[predict]'"
        ) from None
    if kind == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    if kind == "perceptron":
        early = rows >= 200
        perceptron = MLPClassifier(
            (32, 16),
            learning_rate_init=3e-3,
            batch_size=min(256, rows),
            max_iter=60,
            early_stopping=early,
            n_iter_no_change=8,
            random_state=seed,
        )
        return make_pipeline(StandardScaler(), perceptron)
    return GradientBoostingClassifier(
        learning_rate=0.1,
        n_estimators=100,
        max_depth=3,
        subsample=0.5,
        min_samples_leaf=min(40, max(1, rows // 20)),
        random_state=seed,
    )


# ---------------------------------------------------------------------------- how good


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Whether tokens with a predicted probability are accepted that often.

    Parameters
    ----------
    predicted, accepted, counts
        The reliability table: mean prediction and share accepted of each bin, and its tokens.
    brier
        Mean squared error of the probability.
    log_loss
        Mean negative log-likelihood, in nats.
    expected_calibration_error
        Mean distance between prediction and share over the bins, weighted by tokens.
    """

    predicted: Floats
    accepted: Floats
    counts: Ints
    brier: float
    log_loss: float
    expected_calibration_error: float


def calibration(probability: Any, accepted: Any, *, bins: int = 10) -> Calibration:
    """Report how well probabilities are calibrated, in bins of equally many tokens.

    Parameters
    ----------
    probability
        Predicted probability that each token is accepted.
    accepted
        Whether it was, 1 or 0.
    bins
        Rows of the reliability table; equal predictions share a row, so there may be fewer.

    Raises
    ------
    InvalidInput
        If the arrays are empty, of different lengths or outside their domains.
    """
    p, y = _checked(probability, accepted)
    bins = integer("bins", bins, 1, MAX_TOKENS)
    edges = _edges(p, bins)
    which = np.searchsorted(edges, p, side="right")
    counts = np.bincount(which, minlength=len(edges) + 1)
    used = counts > 0
    means = np.bincount(which, weights=p, minlength=len(counts))[used] / counts[used]
    shares = np.bincount(which, weights=y, minlength=len(counts))[used] / counts[used]
    safe = np.clip(p, 1e-15, 1.0 - 1e-15)
    return Calibration(
        predicted=means,
        accepted=shares,
        counts=counts[used].astype(np.int64),
        brier=float(np.mean((p - y) ** 2)),
        log_loss=float(-np.mean(y * np.log(safe) + (1.0 - y) * np.log1p(-safe))),
        expected_calibration_error=float(np.abs(means - shares) @ counts[used] / len(p)),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Roc:
    """What every threshold of a score does to the two outcomes.

    Parameters
    ----------
    thresholds
        Scores from which on a token counts as accepted, falling, from infinity.
    false_accept
        f, the share of first rejections that count as accepted (FPR).
    true_accept
        1 - g, the share of accepted tokens that count as accepted (Rec_1).
    area
        Area under the curve: the probability that an accepted token scores higher than a rejected
        one.
    """

    thresholds: Floats
    false_accept: Floats
    true_accept: Floats
    area: float


def roc(probability: Any, accepted: Any) -> Roc:
    """Return the receiver operating characteristic of a score.

    Raises
    ------
    InvalidInput
        If the arrays do not fit, or an outcome is missing.
    """
    p, y = _checked(probability, accepted)
    positives = float(y.sum())
    if positives in (0.0, float(len(y))):
        raise InvalidInput("accepted: expected both outcomes, got one")
    order = np.argsort(-p, kind="stable")
    p, y = p[order], y[order]
    last = np.append(np.flatnonzero(np.diff(p)), len(p) - 1)
    true_accept = np.append(0.0, np.cumsum(y)[last] / positives)
    false_accept = np.append(0.0, np.cumsum(1.0 - y)[last] / (len(y) - positives))
    area = float(np.sum(np.diff(false_accept) * 0.5 * (true_accept[1:] + true_accept[:-1])))
    return Roc(
        thresholds=np.append(np.inf, p[last]),
        false_accept=false_accept,
        true_accept=true_accept,
        area=area,
    )


# -------------------------------------------------------------------------- from scores to policies


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreBins:
    """A predictor's probability cut into bins, and how often each outcome falls into each.

    Parameters
    ----------
    edges
        Probabilities between the bins, increasing.
    predictor
        The estimated distribution of the bins, for the policies.
    """

    edges: Floats
    predictor: Scores

    def of(self, probability: Any) -> Ints:
        """Return the bin of each probability."""
        found: Ints = np.searchsorted(self.edges, np.asarray(probability), side="right").astype(
            np.int64
        )
        return found


def score_bins(predictor: RejectionPredictor, log: DraftLog, *, bins: int = 8) -> ScoreBins:
    """Estimate the distribution of a predictor's score from tokens that it was not trained on.

    Every bin gets half a token in advance, so that none is impossible. Without tokens behind a
    first rejection, the score there is taken to be as at the rejection.

    Parameters
    ----------
    predictor
        A trained predictor.
    log
        Held-out tokens.
    bins
        Most bins, of equally many judged tokens.

    Raises
    ------
    InvalidInput
        If the log lacks an outcome, or the bins are no integer above 1.
    """
    bins = integer("bins", bins, 2, MAX_TOKENS)
    _check_outcomes(log)
    score = predictor.probability(log.features)
    edges = _edges(score[log.judged], bins)
    which = np.searchsorted(edges, score, side="right")

    def shares(outcome: int) -> Floats:
        counts = np.bincount(which[log.outcomes == outcome], minlength=len(edges) + 1) + 0.5
        return np.asarray(counts / counts.sum(), np.float64)

    after = AFTER if (log.outcomes == AFTER).any() else FIRST_REJECTION
    return ScoreBins(
        edges=edges,
        predictor=Scores(
            accepted=shares(ACCEPTED), first_rejection=shares(FIRST_REJECTION), after=shares(after)
        ),
    )


def _checked(probability: Any, accepted: Any) -> tuple[Floats, Floats]:
    p, y = np.asarray(probability, np.float64), np.asarray(accepted, np.float64)
    if p.ndim != 1 or len(p) == 0 or not ((p >= 0.0) & (p <= 1.0)).all():
        raise InvalidInput(
            f"probability: expected a list of numbers >= 0 and <= 1, got {describe(probability)}"
        )
    if y.shape != p.shape or not np.isin(y, (0.0, 1.0)).all():
        raise InvalidInput(
            f"accepted: expected {len(p)} entries from 0 and 1, got {describe(accepted)}"
        )
    return p, y
