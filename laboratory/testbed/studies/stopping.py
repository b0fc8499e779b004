"""Predictors of rejection trained on some prompts, and policies based on them replayed on others
(paper 2).

The first third of the prompts trains the predictor. The second third determines the distribution of
its score and the best policies. The last third is replayed: a policy reads the recorded scores of a
round until it stops, and receives the tokens accepted up to then.

Easy and hard rounds are mixed. To measure the value of a belief about the difficulty, one predictor
also sees the results of earlier rounds of the same run and the progress of the round, in addition
to the statistics of the draft distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import roc_auc_score

from specopt.api.solve import solve
from specopt.models.draft_stopping.problem import (
    AcceptanceRate,
    DraftStoppingPlan,
    DraftStoppingProblem,
    RoundClass,
)
from specopt.models.drafting import ACCEPTED, AFTER, DraftLog
from specopt.models.fields import Floats, Ints
from specopt.solvers.draft_stopping.replay import replay
from specopt.solvers.drafting.predictors import Kind, fit_predictor, score_bins
from testbed.recorded import RecordedDrafts
from testbed.studies.costs import Costs
from testbed.studies.resampling import Interval, interval

PARTS = 3
MEMORY = 4.0
"""Weight of the mean acceptance in the acceptance of a run so far, as a number of drafts."""


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """Policies at one temperature, on prompts that were not used for fitting.

    Parameters
    ----------
    temperature, predictor, knows_history
        Temperature, name of the predictor, and whether it sees earlier rounds.
    false_accept, false_reject
        Share of first rejections classified as accepted, and of accepted drafts classified as
        rejected, with a threshold of one half for the predicted probability.
    area
        Area under the receiver operating characteristic.
    window
        Best fixed window on the second part.
    fixed, best_fixed, stopping
        Tokens per second on the last part, for that window, for the best window there, and for
        optimal stopping.
    gain
        Gain of stopping over the window, as a share of its speed.
    undrafted
        Tokens per second without drafts, with the measured pass of one token.
    promised
        Values predicted by the policies' own model.
    """

    temperature: float
    predictor: str
    knows_history: bool
    false_accept: float
    false_reject: float
    area: float
    window: int
    fixed: float
    best_fixed: float
    stopping: float
    gain: Interval
    undrafted: float
    promised: float


def stopping(
    log: RecordedDrafts,
    costs: Costs,
    *,
    predictor: Kind = "logistic",
    knows_history: bool = False,
) -> list[Stopping]:
    """Return the value of stopping at each temperature.

    Parameters
    ----------
    log
        Recorded drafts.
    costs
        Times of drafts and rounds. Policies and windows use the time of the longest round for every
        round.
    predictor
        Name in `specopt.solvers.drafting.predictors`.
    knows_history
        Whether the predictor sees the results of earlier rounds.
    """
    found = []
    for temperature in np.unique(log.temperature):
        mine = log.select(log.temperature == temperature)
        found.append(_of(mine, costs, predictor, knows_history))
    return found


def _of(log: RecordedDrafts, costs: Costs, kind: Kind, history: bool) -> Stopping:
    draft_seconds, round_seconds = costs.draft_seconds, costs.round_seconds
    table = _features(log, history)
    part = (
        np.unique(log.prompt, return_inverse=True)[1] // 8 % PARTS
    )  # blocks of 8 prompts contain one of each kind
    train, tune, test = (_log(log, table, part == number) for number in range(PARTS))
    predictor = fit_predictor(train, kind)
    bins = score_bins(predictor, tune)
    problem = DraftStoppingProblem(
        max_draft_tokens=int(log.position.max()) + 1,
        draft_seconds_per_token=draft_seconds,
        round_seconds=round_seconds,
        rounds=(
            RoundClass(
                probability=1.0, acceptance_rate=AcceptanceRate(np.array(tune.acceptance_rate))
            ),
        ),
        scores=bins.predictor,
    )
    best, simple = (solve(problem, method) for method in ("optimal-stopping", "fixed-window"))
    assert isinstance(best.plan, DraftStoppingPlan) and best.objective and simple.objective
    played = log.select(part == PARTS - 1)
    scores = bins.of(predictor.probability(test.features))

    def speed(made: Floats | Ints, drafted: Floats | Ints) -> float:
        return float((made + 1.0).sum() / (round_seconds + draft_seconds * drafted).sum())

    sizes = np.bincount(played.round_numbers)
    lengths = np.bincount(played.round_numbers, weights=played.outcome == ACCEPTED)
    each = [
        speed(np.minimum(lengths, w), np.minimum(sizes, w))
        for w in range(problem.max_draft_tokens + 1)
    ]
    window = simple.stats["window"]
    fixed = each[window]
    made, drafted = replay(best.plan, scores, played.outcome, sizes)
    worth = fixed * (
        round_seconds + draft_seconds * drafted
    )  # tokens of the window in the same time
    gained = interval(made + 1.0 - worth, played.prompt[played.position == 0], weights=worth)
    judged = test.judged
    probability, accepted = (
        predictor.probability(test.features)[judged],
        test.outcomes[judged] == ACCEPTED,
    )
    return Stopping(
        temperature=float(log.temperature[0]),
        predictor=kind,
        knows_history=history,
        false_accept=float((probability[~accepted] >= 0.5).mean()),
        false_reject=float((probability[accepted] < 0.5).mean()),
        area=float(roc_auc_score(accepted, probability)),
        window=window,
        fixed=fixed,
        best_fixed=max(each),
        stopping=speed(made, drafted),
        gain=gained,
        undrafted=costs.undrafted_speed,
        promised=best.objective / simple.objective - 1.0,
    )


def _log(log: RecordedDrafts, table: Floats, mine: Ints) -> DraftLog:
    rounds = log.round_numbers[mine]
    return DraftLog(features=table[mine], outcomes=log.outcome[mine], rounds=rounds)


def _features(log: RecordedDrafts, history: bool) -> Floats:
    """Return the features of the predictor: the four of paper 2, and the results of earlier rounds
    of the run.
    """
    table = log.draft_log().features
    if not history:
        return table
    judged = log.outcome != AFTER
    accepted = (log.outcome == ACCEPTED).astype(np.float64)
    mean = accepted[judged].mean()
    run = np.unique(np.stack([log.prompt, log.seed]), axis=1, return_inverse=True)[1]
    so_far = np.empty(len(log))
    for number in range(int(run.max()) + 1):
        mine = np.flatnonzero(run == number)
        rounds = log.round[mine]
        counts = np.bincount(rounds, weights=judged[mine])
        hits = np.bincount(rounds, weights=accepted[mine])
        before = np.cumsum(counts) - counts, np.cumsum(hits) - hits
        so_far[mine] = ((before[1] + MEMORY * mean) / (before[0] + MEMORY))[rounds]
    return np.column_stack([table, so_far, log.position])
