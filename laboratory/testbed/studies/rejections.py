"""Stopping at the first predicted rejection, as in paper 2, on recorded drafts of prompts that were
not used for fitting.

A round drafts until the predictor expects a rejection, and does not send that draft. Recorded
rounds are replayed from their beginning. Nothing is known beyond their last position.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from specopt.models.drafting import ACCEPTED, AFTER
from specopt.models.fields import Floats
from specopt.solvers.drafting.predictors import Kind, fit_predictor
from testbed.prompts import KINDS
from testbed.recorded import FEATURES, RecordedDrafts

PARTS = 3
BINS = 10


@dataclass(frozen=True, kw_only=True)
class Rejections:
    """A predictor at one temperature, trained on all prompts except for one part, and tested on
    that part.

    Parameters
    ----------
    temperature, predictor, part
        Temperature, name of the predictor, and index of the part.
    by_position
        Share of accepted drafts at each position of a round, among the reached ones.
    accuracy, recall, specificity, area
        Measures on accepted and first rejected drafts with a threshold of one half, as in Table 4,
        and the area under the receiver operating characteristic.
    goes_on_after
        Share of the drafts after a first rejection that the predictor classifies as accepted.
    off, on
        Accepted drafts divided by sent drafts, by maximum length of a round, for complete rounds
        and with the predictor (Table 5).
    """

    temperature: float
    predictor: str
    part: int
    by_position: tuple[float, ...]
    accuracy: float
    recall: float
    specificity: float
    area: float
    goes_on_after: float
    off: tuple[float, ...]
    on: tuple[float, ...]


def rejections(log: RecordedDrafts, predictor: Kind, part: int) -> list[Rejections]:
    """Return the results for each temperature of the log.

    Parameters
    ----------
    log
        Recorded drafts.
    predictor
        Name in `specopt.solvers.drafting.predictors`.
    part
        Third of the prompts for testing. Blocks of 8, one of each kind of task, are assigned in
        turn.
    """
    return [
        _of(log.select(log.temperature == each), predictor, part)
        for each in np.unique(log.temperature)
    ]


def _of(log: RecordedDrafts, kind: Kind, part: int) -> Rejections:
    judging = np.unique(log.prompt, return_inverse=True)[1] // len(KINDS) % PARTS == part
    model = fit_predictor(log.select(~judging).draft_log(), kind)
    log = log.select(judging)
    probability = model.probability(log.draft_log().features)
    goes_on, accepted, after = probability >= 0.5, log.outcome == ACCEPTED, log.outcome == AFTER
    rejected = ~accepted & ~after
    numbers = log.round_numbers
    stops = np.cumsum(~goes_on)  # so far, over all rounds
    sent = goes_on & (stops == (stops - ~goes_on)[log.position == 0][numbers])
    recall, specificity = float(goes_on[accepted].mean()), float((~goes_on)[rejected].mean())
    judged, most = ~after, int(log.position.max()) + 1
    within = [log.position < length for length in range(1, most + 1)]
    return Rejections(
        temperature=float(log.temperature[0]),
        predictor=kind,
        part=part,
        by_position=tuple(
            float(accepted[judged & (log.position == place)].mean()) for place in range(most)
        ),
        accuracy=float((goes_on == accepted)[judged].mean()),
        recall=recall,
        specificity=specificity,
        area=float(roc_auc_score(accepted[judged], probability[judged])),
        goes_on_after=float(goes_on[after].mean()),
        off=tuple(float(accepted[round_].mean()) for round_ in within),
        on=tuple(float(accepted[sent & round_].mean()) for round_ in within),
    )


def correlations(log: RecordedDrafts) -> dict[str, tuple[float, float]]:
    """Return the relation of the statistics of the draft distribution to acceptance (Figures 2 and
    3), by feature.

    Returns
    -------
    The rank correlation of the share accepted over ten equally filled bins, and the correlation
    draft by draft.
    """
    log = log.select(log.outcome != AFTER)
    accepted = (log.outcome == ACCEPTED).astype(np.float64)
    return {name: _correlation(getattr(log, name), accepted) for name in FEATURES}


def _correlation(feature: Floats, accepted: Floats) -> tuple[float, float]:
    from scipy.stats import rankdata

    bins = np.array_split(np.argsort(feature, kind="stable"), BINS)
    rank = np.corrcoef(rankdata([accepted[one].mean() for one in bins]), np.arange(BINS))[0, 1]
    return float(rank), float(np.corrcoef(feature, accepted)[0, 1])
