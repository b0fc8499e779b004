"""Rounds of a plan drawn at random: the Monte Carlo twin of the judge."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from specopt.models.arguments import integer
from specopt.models.draft_stopping import STOP, DraftStoppingPlan, DraftStoppingProblem
from specopt.models.errors import InvalidInput
from specopt.models.fields import Ints, describe
from specopt.solvers.draft_stopping.replay import seconds_of
from specopt.solvers.simulation import MAX_REPLICATIONS, Estimate, Simulation, Tell

ROUNDS_PER_CALL = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class StoppingSimulation(Simulation):
    """What a plan yields, beside the judge's number.

    `estimates` are "tokens_per_second", the ratio of the sums over all rounds, and the accepted and drafted tokens of a
    round.

    Parameters
    ----------
    problem_sha256
        The problem.
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
    """Play a plan.

    Parameters
    ----------
    problem
        Classes of rounds, scores and costs.
    plan
        A feasible plan.
    seed
        The same seed gives every plan rounds of the same classes, acceptances and scores: differences are paired.
    replications
        Rounds, at least 2.
    callback
        Called now and then with the rounds done and the speed so far.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or the plan violates the problem.
    """
    started = time.perf_counter()
    if not isinstance(plan, DraftStoppingPlan):
        raise InvalidInput(f"policy: expected a plan of {problem.kind}, got {describe(plan)}")
    model = problem.evaluate(plan).objective
    replications = integer("replications", replications, 2, MAX_REPLICATIONS)
    seed = integer("seed", seed, 0)
    accepted, drafted = np.empty(replications, np.int64), np.empty(replications, np.int64)
    for call, first in enumerate(range(0, replications, ROUNDS_PER_CALL)):
        part = slice(first, min(first + ROUNDS_PER_CALL, replications))
        rng = np.random.default_rng([seed, call])
        accepted[part], drafted[part] = _play(problem, plan, part.stop - part.start, rng)
        if callback is not None:
            seconds = seconds_of(problem, drafted[: part.stop])
            callback(part.stop, float((1 + accepted[: part.stop]).sum() / seconds.sum()))
    return StoppingSimulation(
        policy="plan",
        replications=replications,
        seed=seed,
        estimates={
            "tokens_per_second": Estimate.ratio(1 + accepted, seconds_of(problem, drafted)),
            "accepted_tokens": Estimate.of(accepted),
            "drafted_tokens": Estimate.of(drafted),
        },
        model=model,
        seconds=time.perf_counter() - started,
        problem_sha256=problem.sha256,
    )


def _play(
    problem: DraftStoppingProblem, plan: DraftStoppingPlan, count: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return accepted and drafted tokens of some rounds."""
    scores = problem.scores
    laws = [np.cumsum(law) / law.sum() for law in (scores.after, scores.first_rejection, scores.accepted)]
    drawn = rng.choice(len(problem.rounds), ROUNDS_PER_CALL, p=problem.probabilities)[
        :count
    ]  # as many whatever the count
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
        which = np.where(survives, 2, np.where(alive, 1, 0))
        score = np.zeros(count, np.int64)
        for outcome, law in enumerate(laws):
            mine = which == outcome
            score[mine] = np.minimum(np.searchsorted(law, luck[1, mine], side="right"), scores.bins - 1)
        node[on] = plan.next.rows[node[on], score[on]]
        alive = survives
    return accepted, drafted
