"""Baselines for `fair-goodput`, which ignore the acceptance rates of the clients."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.fair_goodput.problem import FairGoodputProblem, Schedule
from specopt.models.fields import Ints, PositiveInt
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.method import NO_MIN_RATES, FairGoodputMethod
from specopt.solvers.fair_goodput.rounds import constant, declared, in_time
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class Fixed(FairGoodputMethod):
    """Let every client draft the same number of tokens in every round (Fixed-S)."""

    name = "fixed"
    source = "paper 5, Sec. IV-B: S_i = floor(C / N)"
    guarantee = "none"
    complexity = "O(N)"
    takes = (NO_MIN_RATES,)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Divide the budget evenly, rounded down."""
        each = problem.budget_tokens // problem.clients
        plan = constant(problem, np.minimum(each, problem.max_tokens))
        budget.offer(plan)
        return Outcome(plan=plan)


@dataclass(frozen=True)
class Random(FairGoodputMethod):
    """Assign every token of the budget to a random client in every round (Random-S).

    Parameters
    ----------
    rounds
        Number of rounds in the schedule.
    """

    rounds: PositiveInt = 50

    name = "random"
    source = (
        "paper 5, Sec. IV-B; the distribution is not specified there: every token to a random"
        " client"
    )
    guarantee = "none"
    complexity = "O(rounds N)"
    takes = (NO_MIN_RATES,)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Draw a random allocation for each round. Tokens beyond a client's cap are lost."""
        draw = np.random.default_rng(budget.seed)
        even = np.full(problem.clients, 1.0 / problem.clients)
        drafts: list[Ints] = []
        each = 0.0
        for _ in range(self.rounds):
            drafts.append(
                np.minimum(draw.multinomial(problem.budget_tokens, even), problem.max_tokens)
            )
            if len(drafts) == 1:
                before = budget.seconds
                budget.offer(constant(problem, drafts[0]))
                each = budget.seconds - before
            budget.check(each * len(drafts))  # the time to build and judge the schedule
        schedule = Schedule.of(np.full(len(drafts), 1.0 / len(drafts)), drafts)
        plan = declared(
            problem, in_time(problem, schedule) if problem.per == "second" else schedule
        )
        budget.offer(plan)
        return Outcome(plan=plan)


BASELINES = (
    Fixed,
    Random,
)
