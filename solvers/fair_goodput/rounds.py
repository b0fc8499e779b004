"""Rounds in real time: the best single allocation per second, exactly, and plans made of a few
rounds.

A round lasts max_i(S_i draft_i + network_i) + overhead + verify sum S. Fix when drafting ends and
how many tokens are verified: then the duration is fixed, every client has a cap, and taking the
tokens by falling gain is optimal. Only the times at which some client finishes a token need to be
tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem, Schedule
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget

CHUNK = 10_000_000
"""Tokens looked at between two looks at the clock."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """The single drafts of every client, end to end: what each gains and when it is done.

    Parameters
    ----------
    problem
        A problem per second.
    """

    problem: FairGoodputProblem

    @cached_property
    def clients(self) -> Ints:
        """The client of each draft token that may be worth something."""
        return np.repeat(np.arange(self.problem.clients), useful_drafts(self.problem))

    @cached_property
    def tokens(self) -> Ints:
        """Which token of its client each one is, from 1."""
        most = useful_drafts(self.problem)
        return np.arange(int(most.sum())) - np.repeat(np.cumsum(most) - most, most) + 1

    @cached_property
    def _finish(self) -> Floats:
        problem = self.problem
        assert problem.draft_seconds_per_token is not None and problem.network_seconds is not None
        drafting: Floats = self.tokens * problem.draft_seconds_per_token[self.clients]
        return drafting + problem.network_seconds[self.clients]

    @cached_property
    def _limits(self) -> Floats:
        """The times at which drafting may end, rising: first that of a round without drafts."""
        assert self.problem.network_seconds is not None
        least = float(self.problem.network_seconds.max())
        return np.concatenate(([least], np.unique(self._finish[self._finish > least])))

    @cached_property
    def _chances(self) -> Floats:
        return np.asarray(self.problem.acceptance_rates[self.clients] ** self.tokens, np.float64)

    def best_sum(self, prices: Floats, budget: Budget) -> tuple[float, Ints]:
        """Return the largest sum of prices x rates per second over all allocations, and an
        allocation that has it.
        """
        return self._best(
            prices[self.clients] * self._chances, float(prices.sum()), 0.0, 1.0, budget
        )

    def best_utility(self, budget: Budget) -> Ints:
        """Return the single allocation of the largest utility.

        A steep utility of tokens, and of seconds, may each leave the range of numbers where that of
        rates does not: both count in units amid those that occur.
        """
        g, weight = self.problem.fairness, self.problem.weight / self.problem.weight.sum()
        rates = self.problem.acceptance_rates[self.clients]
        most = expected_tokens(self.problem.acceptance_rates, useful_drafts(self.problem))
        shortest = self.problem.round_seconds(np.zeros(self.problem.clients, np.int64))
        longest = self.problem.round_seconds(useful_drafts(self.problem))
        unit = math.sqrt(float(most.max())) if g > 1.0 else 1.0
        before = expected_tokens(rates, self.tokens - 1) / unit
        chances = self._chances / unit
        if g == 1.0:
            gain = np.log1p(chances / before)
        elif g == 0.0:
            gain = chances
        else:
            gain = (
                before ** (1.0 - g) * np.expm1((1.0 - g) * np.log1p(chances / before)) / (1.0 - g)
            )
        if g > 1.0:
            end = float((weight * (most / unit) ** (1.0 - g)).sum()) / (1.0 - g)
        else:
            end = 0.0 if g == 1.0 else 1.0 / (1.0 - g)
        return self._best(
            weight[self.clients] * gain, end, g, math.sqrt(shortest * longest), budget
        )[1]

    def _best(
        self, gain: Floats, end: float, g: float, unit: float, budget: Budget
    ) -> tuple[float, Ints]:
        """Return the best allocation by its tokens' gains and seconds in a unit.

        `end` is the value of no token, of all of them if g > 1.
        """
        kernels = budget.load("fair_goodput.dual")
        problem = self.problem
        assert (
            problem.verify_overhead_seconds is not None
            and problem.verify_seconds_per_token is not None
        )
        order = np.argsort(-gain, kind="stable")  # within a client by rising token, too
        order = order[gain[order] > 0]
        finish, gain = self._finish[order], gain[order]
        if g > 1.0:  # from the smallest up: no digits are lost
            prefix = np.cumsum(np.concatenate(([end], -gain[::-1])))[::-1].copy()
        else:
            prefix = np.cumsum(np.concatenate(([end], gain)))
        best = np.array([-math.inf, 0.0, 0.0])
        rounds = kernels.Rounds(
            finish=finish / unit,
            gain=gain,
            prefix=prefix,
            limits=self._limits / unit,
            overhead=problem.verify_overhead_seconds / unit,
            per_token=problem.verify_seconds_per_token / unit,
            weight=1.0,
            g=g,
            C=problem.budget_tokens,
        )
        chunk = max(1, CHUNK // (len(order) + 1))
        for first in range(0, len(self._limits), chunk):
            budget.check()
            last = min(first + chunk, len(self._limits))
            if kernels.best_round(rounds, first, last, best):
                break
        taken = order[finish <= self._limits[int(best[1])]][: int(best[2])]
        return float(best[0]), np.bincount(self.clients[taken], minlength=problem.clients).astype(
            np.int64
        )


def useful_drafts(problem: FairGoodputProblem) -> Ints:
    """Return how many draft tokens of each client may be worth something: cap, budget, the range of
    numbers.
    """
    with np.errstate(divide="ignore"):
        worth = np.floor(np.log(1e-300) / np.log(problem.acceptance_rates))
    useful: Ints = np.minimum(problem.max_tokens, np.minimum(worth, 2.0**53).astype(np.int64))
    return useful


def rates_of(problem: FairGoodputProblem, allocation: Ints) -> Floats:
    """Return the rates of every client while rounds have one allocation."""
    rates = expected_tokens(problem.acceptance_rates, allocation)
    return rates / problem.round_seconds(allocation) if problem.per == "second" else rates


def mixture(problem: FairGoodputProblem, shares: Floats, allocations: Ints) -> FairGoodputPlan:
    """Return the plan that mixes allocations, one per row, with shares of rounds or of time."""
    return declared(problem, Schedule.of(shares / shares.sum(), allocations))


def equal_drafts(problem: FairGoodputProblem) -> FairGoodputPlan:
    """Return the plan in which everybody drafts floor(C / N) tokens in every round, or up to the
    cap.
    """
    allocation = np.minimum(problem.budget_tokens // problem.clients, problem.max_tokens)
    return mixture(problem, np.ones(1), allocation[None])


def declared(problem: FairGoodputProblem, schedule: Schedule) -> FairGoodputPlan:
    """Return the plan of a schedule, its goodput and mean drafts summed entry by entry."""
    goodput, tokens = np.zeros((2, problem.clients))
    rounds = 0.0
    for share, allocation in schedule.allocations():
        count = share / problem.round_seconds(allocation) if problem.per == "second" else share
        goodput += count * expected_tokens(problem.acceptance_rates, allocation)
        tokens += count * allocation
        rounds += count
    return FairGoodputPlan(goodput=goodput, mean_draft_tokens=tokens / rounds, schedule=schedule)


def in_time(problem: FairGoodputProblem, schedule: Schedule) -> Schedule:
    """Return a schedule with shares of rounds as the same schedule with shares of time."""
    seconds = schedule.share * [
        problem.round_seconds(allocation) for _, allocation in schedule.allocations()
    ]
    return Schedule(
        share=seconds / seconds.sum(),
        starts=schedule.starts,
        clients=schedule.clients,
        tokens=schedule.tokens,
        full=schedule.full,
    )
