"""Paired statistical comparison of methods.

The module uses Wilcoxon's signed-rank test with Holm's correction, and bootstrap confidence
intervals. The tests compare the relative distances of plans from the best known plan for the same
problem, because such distances are comparable across problems of different sizes. Each problem
contributes one observation, which is the mean over its seeds, because runs on the same problem are
not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from specopt.comparison.cell import Record
from specopt.comparison.table import WITHIN, Comparison, expect_comparison
from specopt.models.fields import Floats

CONFIDENCE = 0.95
"""Confidence level of the bootstrap intervals for mean differences."""


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """Statistical comparison of two methods on the problems for which both methods have plans.

    Parameters
    ----------
    kind
        Kind of the problems.
    first
        Label of the first method.
    second
        Label of the second method.
    problems
        Number of problems on which the methods are compared.
    first_infinite
        Number of problems on which only the first method's plan is infinitely far from the best
        plan, for example because its utility is minus infinity. The test assigns the highest ranks
        to these problems.
    second_infinite
        Number of problems on which only the second method's plan is infinitely far from the best
        plan.
    mean_difference
        Mean difference in relative distance from the best plan, first method minus second method.
        A negative value means that the first method is better. Infinite differences are excluded.
        None if all differences are infinite.
    low
        Lower end of the 95 % bootstrap percentile interval for the mean difference; None if fewer
        than two differences are finite.
    high
        Upper end of the same interval.
    p_value
        Two-sided p-value of Wilcoxon's signed-rank test, after Holm's correction for all pairs of
        methods of the kind. The null hypothesis is that neither method is better. The p-value is 1
        if the methods are equal on all problems.
    """

    kind: str
    first: str
    second: str
    problems: int
    first_infinite: int
    second_infinite: int
    mean_difference: float | None
    low: float | None
    high: float | None
    p_value: float


def paired_tests(comparison: Comparison) -> list[PairedTest]:
    """Compare all pairs of methods, separately for each kind of problem."""
    expect_comparison(comparison)
    found = []
    for kind in comparison.kinds:
        common = comparison.common(comparison.cells(kind))
        pairs = list(combinations(sorted(common[0]) if common else (), 2))
        differences = [
            _differences(comparison, [(cell[one], cell[other]) for cell in common])
            for one, other in pairs
        ]
        p_values = holm([_p_value(values) for values in differences])
        for (one, other), values, p_value in zip(pairs, differences, p_values, strict=True):
            finite = values[np.isfinite(values)]
            low, high = _interval(finite)
            mean = float(np.mean(finite)) if len(finite) else None
            found.append(
                PairedTest(
                    kind=kind,
                    first=one,
                    second=other,
                    problems=len(values),
                    first_infinite=int(np.sum(values == np.inf)),
                    second_infinite=int(np.sum(values == -np.inf)),
                    mean_difference=mean,
                    low=low,
                    high=high,
                    p_value=p_value,
                )
            )
    return found


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's correction, in the same order as the input.

    Examples
    --------
    >>> holm([0.25, 0.0625, 0.03125])
    [0.25, 0.125, 0.09375]
    """
    found, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        found[place] = largest
    return found


def _differences(comparison: Comparison, pairs: Sequence[tuple[Record, Record]]) -> Floats:
    by_problem: dict[str, list[float]] = {}
    for one, other in pairs:
        first = comparison.excess(one)
        second = comparison.excess(other)
        if first is not None and second is not None:
            difference = 0.0 if first == second else first - second  # covers two infinite values
            by_problem.setdefault(one.problem_sha256, []).append(difference)
    means = np.array([_mean(values) for values in by_problem.values()])
    return np.where(np.abs(means) > WITHIN, means, 0.0)  # rounding does not distinguish methods


def _mean(values: list[float]) -> float:
    """Return the mean of the differences over seeds.

    The result is 0 if the values contain both infinities, that is, if each method is infinitely far
    from the best plan for some seed.
    """
    return 0.0 if {np.inf, -np.inf} <= set(values) else float(np.mean(values))


def _p_value(differences: Floats) -> float:
    from scipy.stats import wilcoxon

    apart = differences[differences != 0.0]
    return float(wilcoxon(apart).pvalue) if len(apart) else 1.0


def _interval(differences: Floats) -> tuple[float | None, float | None]:
    from scipy.stats import bootstrap

    if len(differences) < 2:
        return None, None
    given = {
        "confidence_level": CONFIDENCE,
        "method": "percentile",
        "random_state": np.random.default_rng(0),
    }
    interval = bootstrap((differences,), np.mean, **given).confidence_interval
    return float(interval.low), float(interval.high)
