"""Rejection predictors that are trained on logged tokens. Each is a logistic regression, a small
multilayer perceptron or a set of gradient-boosted trees.

The predictors are trained on accepted tokens and first rejections only, because the verifier does
not judge the tokens after a first rejection (paper 2, App. B). Their quality is measured by the
token throughput that they achieve in a `draft-stopping` problem.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from specopt.models.arguments import integer, one_of
from specopt.models.drafting import ACCEPTED, AFTER, FIRST_REJECTION, DraftLog, Scores
from specopt.models.errors import InvalidInput, MissingDependency
from specopt.models.fields import MAX_TOKENS, Floats, Ints

Kind = Literal["logistic", "perceptron", "trees"]


@dataclass(frozen=True, kw_only=True, eq=False)
class RejectionPredictor:
    """A trained predictor that maps the features of a token to its probability of acceptance.

    Parameters
    ----------
    kind
        Kind of model: ``"logistic"``, ``"perceptron"`` or ``"trees"``.
    features
        Names of the features, in column order.
    model
        Fitted scikit-learn estimator.
    """

    kind: Kind
    features: tuple[str, ...]
    model: Any = field(repr=False)

    def probability(self, features: Any) -> Floats:
        """Predict the acceptance probability of each token. The rows of `features` contain the
        features of the tokens.

        Raises
        ------
        InvalidInput
            If the number of columns differs from the number of features in the training log.
        """
        table = np.asarray(features, np.float64)
        if table.ndim != 2 or table.shape[1] != len(self.features):
            expected = f"a table with {len(self.features)} columns ({', '.join(self.features)})"
            raise InvalidInput(f"features: expected {expected}, got shape {table.shape}")
        found: Floats = self.model.predict_proba(table)[:, 1]
        return found

    @property
    def coefficients(self) -> dict[str, float] | None:
        """Intercept and coefficients of the log-odds of acceptance, in terms of the original,
        unstandardized features.

        None unless the predictor is a logistic regression.
        """
        if self.kind != "logistic":
            return None
        scaler, regression = self.model[0], self.model[1]
        slopes = regression.coef_[0] / scaler.scale_
        at_zero = float(regression.intercept_[0] - slopes @ scaler.mean_)
        return {"intercept": at_zero, **dict(zip(self.features, slopes.tolist(), strict=True))}


def fit_predictor(log: DraftLog, kind: Kind = "logistic", *, seed: int = 0) -> RejectionPredictor:
    """Train a predictor on the logged tokens that the verifier judged.

    Parameters
    ----------
    log
        Logged tokens, with at least one accepted token and one first rejection.
    kind
        Kind of model: ``"logistic"`` regression, a ``"perceptron"`` with hidden layers of 32 and 16
        units, or gradient-boosted ``"trees"``.
    seed
        Seed of the random numbers used in training.

    Raises
    ------
    InvalidInput
        If the kind is unknown, or if the log lacks accepted tokens or first rejections.
    MissingDependency
        If scikit-learn is not installed.
    """
    one_of("kind", kind, get_args(Kind))
    seed = integer("seed", seed, 0, 2**32 - 1)  # scikit-learn accepts no larger seed
    check_outcomes(log)
    outcomes = log.outcomes[log.judged]
    model = _untrained(kind, len(outcomes), seed)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # no warning about convergence: calibration shows the quality
        model.fit(log.features[log.judged], outcomes)
    return RejectionPredictor(kind=kind, features=log.names, model=model)


def check_outcomes(log: DraftLog) -> None:
    """Raise `InvalidInput` if a log contains no accepted tokens or no first rejections."""
    for outcome, word in ((ACCEPTED, "accepted token"), (FIRST_REJECTION, "first rejection")):
        if not (log.outcomes == outcome).any():
            raise InvalidInput(f"outcomes: expected at least one {word}, got none")


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


# -------------------------------------------------------------------------- from scores to policies


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreBins:
    """A binning of predicted probabilities, with the distribution over the bins for each outcome.

    Parameters
    ----------
    edges
        Probabilities that separate the bins, in increasing order.
    predictor
        Estimated distribution over the bins for each outcome, which policies use to update their
        beliefs.
    """

    edges: Floats
    predictor: Scores

    def of(self, probability: Any) -> Ints:
        """Return the index of the bin that contains each probability."""
        found: Ints = np.searchsorted(self.edges, np.asarray(probability), side="right").astype(
            np.int64
        )
        return found


def score_bins(predictor: RejectionPredictor, log: DraftLog, *, bins: int = 8) -> ScoreBins:
    """Divide a predictor's scores into bins, and estimate their distribution from held-out tokens.

    A pseudocount of one half is added to every bin, which keeps all probabilities positive. If the
    log contains no tokens after a first rejection, their scores are assumed to have the same
    distribution as the scores at a first rejection.

    Parameters
    ----------
    predictor
        Trained predictor.
    log
        Logged tokens that were not used in training.
    bins
        Maximum number of bins. All bins contain about the same number of tokens that the verifier
        judged.

    Raises
    ------
    InvalidInput
        If the log lacks accepted tokens or first rejections, or if `bins` is not an integer above
        1.
    """
    bins = integer("bins", bins, 2, MAX_TOKENS)
    check_outcomes(log)
    score = predictor.probability(log.features)
    # Bins contain about equally many tokens; equal scores share a bin.
    edges = np.unique(np.quantile(score[log.judged], np.linspace(0.0, 1.0, bins + 1)[1:-1]))
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
