"""Where to cut a predictor's score: by the token speed that follows, not by accuracy."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.drafting import BinaryPredictor, DraftingSetting, Scores
from specopt.solvers.drafting.first_flag import first_flag
from specopt.solvers.drafting.fixed_window import fixed_window
from specopt.solvers.drafting.optimal_stopping import optimal_stopping
from specopt.solvers.drafting.policy import Drafting


@dataclass(frozen=True, kw_only=True)
class OperatingPoint:
    """A cut of the score, and what the three policies make of it.

    Parameters
    ----------
    first_accepted_bin
        Scores from this bin on count as "accepted".
    predictor
        The binary predictor that this gives.
    accuracy, balanced_accuracy
        Share of right answers on accepted tokens and first rejections, as they occur and in equal shares.
    first_flag, optimal_stopping
        The policy that stops at the first predicted rejection, and the best one on the same bits.
    """

    first_accepted_bin: int
    predictor: BinaryPredictor
    accuracy: float
    balanced_accuracy: float
    first_flag: Drafting
    optimal_stopping: Drafting

    @property
    def wasted(self) -> float:
        """E[W] of the policy that stops at the first predicted rejection."""
        return self.first_flag.expected.wasted


@dataclass(frozen=True, kw_only=True)
class OperatingPoints:
    """Every cut of a score, and what to compare them with.

    Parameters
    ----------
    points
        From "always accepted" to "always rejected".
    fixed_window
        The best fixed window, which reads no score.
    all_scores
        Optimal stopping on the score bins themselves: no cut is faster.
    """

    points: tuple[OperatingPoint, ...]
    fixed_window: Drafting
    all_scores: Drafting

    @property
    def fastest(self) -> OperatingPoint:
        """The cut with the highest token speed when drafts stop at the first predicted rejection."""
        return max(self.points, key=lambda point: point.first_flag.tokens_per_second)

    @property
    def fastest_bits(self) -> OperatingPoint:
        """The cut with the highest token speed under optimal stopping on its bits."""
        return max(self.points, key=lambda point: point.optimal_stopping.tokens_per_second)

    @property
    def most_accurate(self) -> OperatingPoint:
        """The cut with the highest accuracy."""
        return max(self.points, key=lambda point: point.accuracy)


def operating_points(setting: DraftingSetting, predictor: Scores, *, sends_flagged: bool = False) -> OperatingPoints:
    """Return what every cut of a score is worth in a setting.

    Parameters
    ----------
    setting
        Costs and acceptance.
    predictor
        Distribution of the score bins, in increasing order of the score.
    sends_flagged
        Whether the rule of the paper sends the flagged token.
    """
    alpha = setting.acceptance_rate
    points = []
    for cut in range(predictor.bins + 1):
        bits = predictor.cut(cut)
        right, caught = 1.0 - bits.false_reject, 1.0 - bits.false_accept
        points.append(
            OperatingPoint(
                first_accepted_bin=cut,
                predictor=bits,
                accuracy=alpha * right + (1.0 - alpha) * caught,
                balanced_accuracy=0.5 * (right + caught),
                first_flag=first_flag(setting, predictor, first_accepted_bin=cut, sends_flagged=sends_flagged),
                optimal_stopping=optimal_stopping(setting, bits.scores),
            )
        )
    return OperatingPoints(
        points=tuple(points),
        fixed_window=fixed_window(setting, bins=predictor.bins),
        all_scores=optimal_stopping(setting, predictor),
    )
