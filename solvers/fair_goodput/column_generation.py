"""The fair optimum per second: mix rounds, and add the most valuable round at the prices of the
current mixture.

The long-run rates per second are the mixtures, by shares of time, of the rates of each allocation k
while it runs, mu(k) / T(k). At rates x the slope of the common rate prices every client; a round
worth more than x at these prices improves the mixture, and its value bounds all mixtures
(`specopt.solvers.fair_goodput.common_rate`). The best round is found exactly
(`specopt.solvers.fair_goodput.rounds`), so the proof is exact, too.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import numpy as np

from specopt.models.errors import Infeasible, InvalidInput
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.models.fields import Floats, Ints
from specopt.models.problem import TOLERANCE
from specopt.models.result import Conflict
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.common_rate import prices_at, raised
from specopt.solvers.fair_goodput.master import ACCURATE, beyond, fairest_mixture, keep_least
from specopt.solvers.fair_goodput.method import (
    PER_SECOND,
    FairGoodputMethod,
    admitted,
    offer_first_plan,
)
from specopt.solvers.fair_goodput.region import LAST_DIGITS
from specopt.solvers.fair_goodput.rounds import best_sum, mixture, plain_plans, rates_of
from specopt.solvers.fair_goodput.tokens_per_round import fair_per_round
from specopt.solvers.method import Outcome

PROVEN = 2e-10
"""Gap, of the common rate, at which the search ends; plans within 1e-9 count as optimal."""

DROPPED = 1e-11
"""Shares below it are left out of the plan."""

SHORT = 100
"""Entries up to which the rounds of the optimum per round join the first mixture."""

TURNS = 10_000
"""Clients up to which the optimum per round is looked at: its schedule takes time by their square.
"""

_SECONDS_PER_NUMBER = 5e-9  # of a mixture, by clients times the square of its rounds, roughly


@dataclass(frozen=True)
class ColumnGeneration(FairGoodputMethod):
    """Find the fair optimum per second as a mixture of rounds, by column generation."""

    name = "column-generation"
    exact = True
    source = (
        "own; paper 5 with the duration of rounds, simplicial decomposition with an exact oracle"
    )
    guarantee = "optimal, with the best round at the mixture's prices as proof"
    complexity = "O(N K^2 + K^3) per mixture of K rounds, and one best round for each"
    takes = (PER_SECOND,)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Mix, price, add the best round, until none is worth more than the mixture."""
        return Search(problem, budget).run()


class Search:
    """State of one run: the rounds so far, the best mixture, and the best bound."""

    def __init__(self, problem: FairGoodputProblem, budget: Budget) -> None:
        self.problem = problem
        self.budget = budget
        least = np.zeros(problem.clients) if problem.min_goodput is None else problem.min_goodput
        self.least = least * (1.0 - LAST_DIGITS)
        self.known: dict[bytes, int] = {}
        self.allocations: list[Ints] = []
        self.rates: list[Floats] = []
        self.bound = math.inf
        self.best_log = (
            -math.inf
        )  # of the common rate of the best mixture, and of a bound on all mixtures
        self.bound_log = math.inf
        self.mixtures = 0

    def run(self) -> Outcome:
        """Return the best mixture with its proof."""
        problem, budget = self.problem, self.budget
        offer_first_plan(problem, budget)
        plans = plain_plans(problem)
        if problem.clients <= TURNS:
            # A utility of rates per round may be out of range, and the plan miss least rates.
            with contextlib.suppress(InvalidInput):
                fair, bound = fair_per_round(problem, budget)
                budget.improve_bound(bound)
                if problem.min_goodput is None or not problem.violations(fair):
                    budget.offer(fair)
                if len(fair.schedule) <= SHORT:  # clients with the same numbers take turns in it
                    plans.append(fair)
        for plan in plans:
            for _, allocation in plan.schedule.allocations():
                self.add(allocation)
        if problem.min_goodput is not None:
            self.reach_least()
        while True:
            numbers = float(problem.clients * len(self.rates))
            budget.hold("clients times rounds", 100.0 * numbers)
            budget.spend(_SECONDS_PER_NUMBER * numbers * (len(self.rates) + 20.0))
            budget.check()
            table = np.array(self.rates).T
            found = fairest_mixture(table, problem.weight, problem.fairness, self.least)
            self.mixtures += 1
            shares = np.where(found.shares < DROPPED, 0.0, found.shares)
            if self.is_best(keep_least(table, shares / shares.sum(), self.least), found.extra):
                return self.outcome()

    def is_best(self, shares: Floats, extra: Floats) -> bool:
        """Offer a mixture; tell whether it is proven, or add the round that its prices and extra
        ones make best.
        """
        problem, budget = self.problem, self.budget
        used = np.flatnonzero(shares)
        budget.offer(mixture(problem, shares[used], np.array(self.allocations)[used]))
        x = np.array(self.rates).T @ shares
        prices = prices_at(problem, x) + extra
        worth, allocation = best_sum(problem, prices, budget)
        factor = max(1.0, worth - float(extra @ self.least))
        self.bound = min(self.bound, raised(problem, problem.utility(x), factor))
        budget.improve_bound(self.bound)
        log = problem.log_common_rate(x)
        self.best_log = max(self.best_log, log)
        self.bound_log = min(self.bound_log, log + math.log(factor))
        return math.expm1(self.bound_log - self.best_log) <= max(
            budget.gap, PROVEN
        ) or not self.add(allocation)

    def outcome(self) -> Outcome:
        """Return the best plan offered, and the bound."""
        plan, objective = self.budget.incumbent, self.budget.objective
        assert isinstance(plan, FairGoodputPlan) and objective is not None
        stats = {
            "mixtures": self.mixtures,
            "rounds": len(self.allocations),
            "entries": len(plan.schedule),
        }
        bound = max(self.bound, objective)
        return admitted(self.problem, Outcome(plan=plan, bound=bound, stats=stats))

    def add(self, allocation: Ints) -> bool:
        """Add a round; return whether it was new."""
        key = allocation.tobytes()
        if key in self.known:
            return False
        self.known[key] = len(self.allocations)
        self.allocations.append(allocation)
        self.rates.append(rates_of(self.problem, allocation))
        return True

    def reach_least(self) -> None:
        """Add rounds until some mixture gives every least rate.

        Where they are missed by no more than the judge allows, they are lowered to the most that
        some mixture gives of all of them.

        Raises
        ------
        Infeasible
            If none does.
        """
        from scipy.optimize import linprog

        due = np.flatnonzero(self.least > 0)
        if not len(due):
            return
        need = self.least[due]
        alone, clash = [], []
        for client in due:
            price = np.zeros(self.problem.clients)
            price[client] = 1.0
            best, allocation = best_sum(self.problem, price, self.budget)
            self.add(allocation)
            if best < self.least[client] * (1.0 - TOLERANCE):
                alone.append(
                    f"client {client} needs {self.least[client]:.6g} tokens per second, but gets"
                    f" at most {best:.6g}"
                )
                needs = float(self.least[client])
                clash.append(
                    Conflict(constraint="min_goodput", index=int(client), needs=needs, has=best)
                )
        if alone:
            raise Infeasible(
                "; ".join(alone[:3]) + (f", and {len(alone) - 3} more" if len(alone) > 3 else ""),
                clash,
            )
        while True:
            self.budget.check()
            spare, size = beyond(np.array(self.rates).T[due], need)
            count = spare.shape[1]
            # Maximise the part of the least rates that a mixture gives to all who are due one; the
            # variable is 1 less.
            found = linprog(
                np.append(np.zeros(count), -1.0),
                A_ub=np.column_stack((-spare, need / size)),
                b_ub=np.zeros(len(due)),
                A_eq=np.append(np.ones(count), 0.0)[None],
                b_eq=[1.0],
                bounds=[*[(0.0, None)] * count, (-1.0, 1.0)],
                options=ACCURATE,
            )
            more = -float(found.fun)
            if more >= TOLERANCE:
                return
            prices = np.zeros(self.problem.clients)
            prices[due] = np.maximum(0.0, -found.ineqlin.marginals) / size
            total = float(prices @ self.least)
            best, allocation = best_sum(self.problem, prices / total, self.budget)
            if best < 1.0 - TOLERANCE:
                names = ", ".join(
                    f"client {i} {self.least[i]:.6g}"
                    for i in due[np.argsort(-prices[due] * need, kind="stable")][:3]
                )
                raise Infeasible(
                    f"no mixture of rounds reaches all minimum rates (tokens per second: {names}"
                    f"{', ...' if len(due) > 3 else ''}): the best reaches {best:.4%} of each",
                    [Conflict(constraint="min_goodput", needs=1.0, has=best)],
                )
            if not self.add(allocation):
                self.least = self.least * (1.0 + min(0.0, more))
                return
