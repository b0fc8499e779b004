"""Compare predicted with measured values, using only the raw numbers of records.

A point is a plan: the prediction for it, and the median of its repetitions. The order of plans is
compared only within their scene, which has the same tasks and the same link. Intervals are 95 %
percentile bootstraps over plans within each scene. They describe the uncertainty for similar plans
on this machine, not on others. Intervals of shares of pairs contain at least the exact binomial
interval, because the bootstrap has no spread if every pair is right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.fields import Floats
from specopt.models.position_acceptance import PositionAcceptance
from testbed.studies.resampling import LEVEL, RESAMPLES, Interval

APART = 0.05
"""Predictions that differ by less than this share do not determine which plan is faster."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """A plan, predicted and measured.

    Parameters
    ----------
    kind, pair, scene
        Kind, pair and scene of the plan. The same tasks over the same link are one scene.
    methods
        Methods that found the plan.
    label
        Label that distinguishes it from others of its scene.
    predicted
        Predicted value.
    repetitions
        Measured values.
    """

    kind: str
    pair: str
    scene: int
    methods: tuple[str, ...]
    label: str
    predicted: float
    repetitions: tuple[float, ...]

    @property
    def measured(self) -> float:
        """Median of the repetitions."""
        return float(np.median(self.repetitions))

    @property
    def error(self) -> float:
        """Prediction divided by measurement, minus 1."""
        return self.predicted / self.measured - 1.0


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The accuracy of a predictor.

    Parameters
    ----------
    points
        Number of plans.
    median_error
        Median of the absolute relative errors.
    bias
        Median of the relative errors, which is below 0 if predictions are too low.
    pairs
        Pairs of plans of one scene whose predictions differ by `APART` or more.
    right_order
        Share of these whose measured order is the predicted one.
    separated
        Number of these pairs that repetitions separate: every repetition of one plan is below every
        one of the other.
    separated_order
        Share of these whose measured order is the predicted one.
    scene_errors
        Median of the absolute relative errors of each scene.
    """

    points: int
    median_error: Interval
    bias: Interval
    pairs: int
    right_order: Interval
    separated: int
    separated_order: Interval
    scene_errors: tuple[float, ...]


def quantities(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the predictors and the quantities that they predict, in the order of the record."""
    found: dict[tuple[str, str], None] = {}
    for trial in record["trials"]:
        for predictor, numbers in trial["predicted"].items():
            found |= dict.fromkeys((predictor, quantity) for quantity in numbers)
    return list(found)


def points_of(record: Mapping[str, Any], predictor: str, quantity: str) -> list[Point]:
    """Return the points of a record, for the trials that were played and that have this
    prediction.
    """
    return [
        Point(
            kind=record["kind"],
            pair=record["pair"],
            scene=trial["scene"],
            methods=tuple(trial["methods"]),
            label=trial["label"],
            predicted=trial["predicted"][predictor][quantity],
            repetitions=tuple(one[quantity] for one in trial["measured"]),
        )
        for trial in record["trials"]
        if trial["measured"] and quantity in trial["predicted"].get(predictor, {})
    ]


def summarise(points: Sequence[Point], seed: int = 0) -> Summary:
    """Return the accuracy of predictions. At least one point is required."""
    columns = np.array(
        [(p.predicted, p.measured, min(p.repetitions), max(p.repetitions)) for p in points]
    )
    scenes = np.array([point.scene for point in points])

    def of(statistic: Callable[[Floats, Floats], float]) -> Interval:
        return bootstrap(lambda rows: statistic(*columns[rows, :2].T), scenes, seed)

    def order(*, separated: bool) -> tuple[int, Interval]:
        def told(rows: Any) -> Any:
            return _pairs(columns[rows], scenes[rows], separated=separated)

        right, wrong = told(np.arange(len(points))).tolist()
        drawn, exact = (
            bootstrap(lambda rows: _share(told(rows)), scenes, seed),
            binomial(right, right + wrong),
        )
        return right + wrong, Interval(
            drawn.value, np.fmin(drawn.low, exact.low), np.fmax(drawn.high, exact.high)
        )

    (pairs, right_order), (separated, separated_order) = (
        order(separated=False),
        order(separated=True),
    )
    errors = np.abs(columns[:, 0] / columns[:, 1] - 1.0)
    return Summary(
        points=len(points),
        median_error=of(lambda p, m: float(np.median(np.abs(p / m - 1.0)))),
        bias=of(lambda p, m: float(np.median(p / m - 1.0))),
        pairs=pairs,
        right_order=right_order,
        separated=separated,
        separated_order=separated_order,
        scene_errors=tuple(
            float(np.median(errors[scenes == scene])) for scene in np.unique(scenes)
        ),
    )


def binomial(came_true: int, of: int) -> Interval:
    """Return a share and its exact interval (Clopper and Pearson), or NaN for no trials.

    Examples
    --------
    >>> [round(end, 3) for end in (binomial(3, 3).low, binomial(3, 3).high)]
    [0.292, 1.0]
    """
    if not of:
        return Interval(*[float("nan")] * 3)
    found = PositionAcceptance.from_counts([of], [came_true], level=LEVEL)
    return Interval(*(float(ends[0]) for ends in (found.rates, found.lower, found.upper)))


def bootstrap(statistic: Callable[[Any], float], scenes: Any, seed: int = 0) -> Interval:
    """Return a statistic of rows and its interval, with rows resampled within each scene."""
    random = np.random.default_rng(seed)
    groups = [np.flatnonzero(scenes == scene) for scene in np.unique(scenes)]
    drawn = [
        statistic(np.concatenate([random.choice(group, size=len(group)) for group in groups]))
        for _ in range(RESAMPLES)
    ]
    known = np.array([one for one in drawn if np.isfinite(one)])
    low, high = (
        np.quantile(known, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2]) if len(known) else (np.nan, np.nan)
    )
    return Interval(statistic(np.arange(len(scenes))), float(low), float(high))


def _pairs(columns: Floats, scenes: Any, *, separated: bool) -> Any:
    """Return the numbers of pairs in the right and in the wrong order, among those whose
    predictions differ enough.
    """
    predicted, measured, least, most = columns.T
    one, other = np.triu_indices(len(predicted), 1)
    apart = np.abs(predicted[one] - predicted[other]) >= APART * np.minimum(
        predicted[one], predicted[other]
    )
    told = apart & (scenes[one] == scenes[other])
    if separated:
        told &= (most[one] < least[other]) | (most[other] < least[one])
    right = (predicted[one] < predicted[other]) == (measured[one] < measured[other])
    return np.array([(told & right).sum(), (told & ~right).sum()])


def _share(counts: Any) -> float:
    return float(counts[0] / counts.sum()) if counts.sum() else float("nan")


@dataclass(frozen=True, kw_only=True)
class Gain:
    """The gain of one method's plan over another's in a scene: saved seconds or additional
    throughput, as a share of the other's value.

    Parameters
    ----------
    scene, label
        Scene and label.
    ours, theirs
        Names of the methods.
    predicted
        Predicted gain.
    measured
        Measured gain, with the interval from the minimum to the maximum over all pairs of
        repetitions.
    """

    scene: int
    label: str
    ours: str
    theirs: str
    predicted: float
    measured: Interval


def gains_of(
    points: Sequence[Point], ours: str, theirs: str, *, smaller_is_better: bool = True
) -> list[Gain]:
    """Return the gains of one method over another, for all labels of a scene with plans of both."""

    def gain(one: float, other: float) -> float:
        return 1.0 - one / other if smaller_is_better else one / other - 1.0

    found = []
    for point in points:
        if ours not in point.methods:
            continue
        for rival in points:
            if theirs in rival.methods and (rival.scene, rival.label) == (point.scene, point.label):
                each = [
                    gain(one, other) for one in point.repetitions for other in rival.repetitions
                ]
                measured = Interval(gain(point.measured, rival.measured), min(each), max(each))
                promised = gain(point.predicted, rival.predicted)
                found.append(
                    Gain(
                        scene=point.scene,
                        label=point.label,
                        ours=ours,
                        theirs=theirs,
                        predicted=promised,
                        measured=measured,
                    )
                )
    return found
