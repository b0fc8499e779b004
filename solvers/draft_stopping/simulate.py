"""Simulation of random rounds under a plan, as a Monte Carlo check of the exact evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.draft_stopping.problem import STOP, DraftStoppingPlan, DraftStoppingProblem
from specopt.models.fields import Ints
from specopt.solvers.draft_stopping.replay import seconds_of
from specopt.solvers.simulation import Estimate, Replications, Simulation, Tell, judged

ROUNDS_PER_CALL = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class StoppingSimulation(Simulation):
    """The simulated performance of a plan, together with its exact rate.

    `estimates` contains "tokens_per_second", which is the ratio of total tokens to total time, and
    the mean numbers of accepted and drafted tokens per round.

    Parameters
    ----------
    problem_sha256
        SHA-256 digest of the problem.
    """

    kind = DraftStoppingProblem.kind
    problem_sha256: str


def simulate(
    problem: DraftStoppingProblem,
    plan: DraftStoppingPlan,
    *,
    seed: int = 0,
    replications: int = 100_000,
    callback: Tell | None = None,
) -> StoppingSimulation:
    """Simulate random rounds under a plan.

    Parameters
    ----------
    problem
        Problem that defines the classes of rounds, the scores and the costs.
    plan
        A feasible plan.
    seed
        Seed of the random numbers. Plans that are simulated with the same seed share the classes of
        rounds and the random draws, so differences between plans are paired.
    replications
        Number of rounds, at least 2.
    callback
        Function that is called repeatedly with the number of rounds completed and the speed so far.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or the plan violates the problem.
    """
    runs = Replications(seed, replications, callback, minimum=2)
    model = judged(problem, plan).objective
    accepted, drafted = np.empty((2, runs.count), np.int64)

    def play(part: slice) -> None:
        rng = np.random.default_rng([runs.seed, part.start // ROUNDS_PER_CALL])
        accepted[part], drafted[part] = _play(problem, plan, part.stop - part.start, rng)

    def figures(done: int) -> dict[str, Any]:
        return {
            "tokens_per_second": Estimate.ratio(
                1 + accepted[:done], seconds_of(problem, drafted[:done])
            ),
            "accepted_tokens": accepted[:done],
            "drafted_tokens": drafted[:done],
        }

    found = runs.play(play, figures, at_once=ROUNDS_PER_CALL)
    return runs.result(
        StoppingSimulation, "plan", found, model=model, problem_sha256=problem.sha256
    )


def _play(
    problem: DraftStoppingProblem, plan: DraftStoppingPlan, count: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return the numbers of accepted and drafted tokens in each of `count` random rounds."""
    scores = problem.scores
    laws = [
        np.cumsum(law) / law.sum()
        for law in (scores.after, scores.first_rejection, scores.accepted)
    ]
    drawn = rng.choice(len(problem.rounds), ROUNDS_PER_CALL, p=problem.probabilities)[
        :count
    ]  # draw as many as in a full call
    rates = problem.acceptance_rates[drawn]
    node = np.full(count, plan.start)
    alive = np.ones(count, np.bool_)
    accepted, drafted = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for position in range(problem.max_draft_tokens):
        luck = rng.random((2, ROUNDS_PER_CALL))[:, :count]  # the same for every plan and count
        on = node != STOP
        if not on.any():
            break
        survives = alive & (luck[0] < rates[:, position])
        drafted += on
        accepted += on & survives
        which = alive.astype(np.int64) + survives
        score = np.zeros(count, np.int64)
        for outcome, law in enumerate(laws):
            mine = which == outcome
            score[mine] = np.minimum(
                np.searchsorted(law, luck[1, mine], side="right"), scores.bins - 1
            )
        node[on] = plan.next.rows[node[on], score[on]]
        alive = survives
    return accepted, drafted
