"""The method `column-generation` for `fair-goodput`, which finds the fair optimum per second.

The method optimises a mixture of known rounds, and then adds the round with the largest value at
the prices of the mixture.

The possible long-run rates per second are mixtures, by shares of time, of the rates mu(k) / T(k) of
each allocation k while it runs. At rates x, the gradient of the logarithm of the common rate
defines a price for every client. A round with a larger value than x at these prices improves the
mixture. The largest value of any round bounds the common rate of all mixtures
(`specopt.solvers.fair_goodput.common_rate`). The best round is found exactly
(`specopt.solvers.fair_goodput.rounds`), so the proof is also exact.
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
from specopt.solvers.fair_goodput.master import best_shares, fairest_mixture, keep_least
from specopt.solvers.fair_goodput.method import (
    FEW,
    PER_SECOND,
    FairGoodputMethod,
    admitted,
    offer_first_plan,
)
from specopt.solvers.fair_goodput.region import LAST_DIGITS, gain_of, too_high
from specopt.solvers.fair_goodput.rounds import best_sum, mixture, plain_allocations, rates_of
from specopt.solvers.fair_goodput.tokens_per_round import fair_per_round
from specopt.solvers.method import Outcome

PROVEN = 2e-10
"""Relative gap of the common rate at which the search ends.

Plans within 1e-9 of the optimum count as optimal.
"""

MAX_EXTRA = 1e6
"""Maximum product of a minimum rate and its multiplier."""

DROPPED = 1e-11
"""Share of a mixture below which a round is left out of the plan."""

SHORT = 100
"""Maximum number of schedule entries for which the optimum per round provides initial rounds.

If the optimal schedule per round has more entries, its rounds are not added to the first mixture.
"""

TURNS = 10_000
"""Maximum number of clients for which the optimum per round is tried. The time to build the optimal
schedule grows with the square of the number of clients.
"""

_SECONDS_PER_NUMBER = 5e-9  # approximate work of a mixture, per client and squared number of rounds


@dataclass(frozen=True)
class ColumnGeneration(FairGoodputMethod):
    """Find the fair optimum per second as a mixture of rounds, by column generation."""

    name = "column-generation"
    exact = True
    source = "specopt; paper 5 with durations of rounds, simplicial decomposition, exact oracle"
    guarantee = "optimal, with the best round at the mixture's prices as proof"
    complexity = "O(N K^2 + K^3) per mixture of K rounds, and one best round for each"
    takes = (PER_SECOND,)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Alternately optimise the mixture and add the best round at its prices.

        The search ends when no round has a larger value than the mixture.
        """
        search = Search(problem, budget)
        if len(search.due):
            offer_first_plan(problem, budget)
        elif search.is_one_round():
            return search.outcome()
        if problem.clients <= TURNS:
            # A utility of rates per round may be out of range, and the plan may miss minimum rates.
            with contextlib.suppress(InvalidInput):
                fair, bound = fair_per_round(problem, budget)
                budget.improve_bound(bound)
                if problem.min_goodput is None or not problem.violations(fair):
                    budget.offer(fair)
                if len(fair.schedule) <= SHORT:  # clients with the same numbers take turns in it
                    for _, allocation in fair.schedule.allocations():
                        search.add(allocation)
        return search.run()


class Search:
    """State of a column generation: the known rounds, the best mixture, and the best bound."""

    def __init__(self, problem: FairGoodputProblem, budget: Budget) -> None:
        self.problem, self.budget = problem, budget
        least = np.zeros(problem.clients) if problem.min_goodput is None else problem.min_goodput
        self.due = np.flatnonzero(least > 0)
        self.least = least[self.due] * (1.0 - LAST_DIGITS)
        self.known: set[bytes] = set()
        self.allocations: list[Ints] = []
        self.rates: list[Floats] = []
        self.spare: list[Floats] = []  # see `spare_of`
        self.bound = math.inf
        self.best: FairGoodputPlan
        self.best_log = -math.inf  # logarithm of the common rate of `best`
        self.bound_log = math.inf  # logarithm of a bound on the common rate of all mixtures
        self.mixtures = 0
        for allocation in plain_allocations(problem):
            self.add(allocation)

    def run(self) -> Outcome:
        """Run the search and return the best mixture with its upper bound."""
        problem, budget = self.problem, self.budget
        if len(self.due):
            self.reach_least()
        while True:
            numbers = float(problem.clients * len(self.rates))
            budget.hold("clients times rounds", 100.0 * numbers)
            budget.spend(_SECONDS_PER_NUMBER * numbers * (len(self.rates) + 20.0))
            budget.check()
            table, (spare, unit) = np.array(self.rates).T, self.beyond(finely=True)
            found = fairest_mixture(table, problem.weight, problem.fairness, spare)
            self.mixtures += 1
            shares = np.where(found.shares < DROPPED, 0.0, found.shares)
            shares = keep_least(table, shares / shares.sum(), spare)
            is_new = self.tighten(self.offer(shares), found.extra / unit)
            if self.is_proven or not is_new:
                return self.outcome()

    def is_one_round(self) -> bool:
        """Return whether a single round is proven optimal, so that no mixture is needed.

        The search starts with the known round that has the largest common rate. It continues with
        the round that has the largest value at the prices of the current round, as long as the
        common rate increases.
        """
        common, none = self.problem.log_common_rate, np.zeros(0)
        logs = list(map(common, self.rates))
        best = int(np.argmax(logs))
        if self.problem.clients > FEW:
            self.offer(np.eye(len(logs))[best])
        try:
            while True:
                self.tighten(self.rates[best], none)
                logs += map(common, self.rates[len(logs) :])
                if logs[-1] <= logs[best]:
                    break
                best = len(logs) - 1
        finally:
            self.offer(np.eye(len(self.rates))[best])
        return self.is_proven

    def offer(self, shares: Floats) -> Floats:
        """Return the rates of the mixture with the given share of each known round.

        The mixture is recorded if it is better than all previous mixtures.
        """
        x: Floats = np.array(self.rates).T @ shares
        log = self.problem.log_common_rate(x)
        if log > self.best_log:
            used = np.flatnonzero(shares)
            self.best = mixture(self.problem, shares[used], np.array(self.allocations)[used])
            self.best_log = log
            self.budget.offer(self.best)
        return x

    def tighten(self, x: Floats, extra: Floats) -> bool:
        """Compute a bound from the prices at rates `x`, and add the round with the largest value.

        `extra` contains the multipliers of the minimum rates. Return whether the round is new.
        """
        problem = self.problem
        worth, allocation = self.best_round(prices_at(problem, x), extra)
        factor = max(1.0, worth)
        self.bound = min(self.bound, raised(problem, problem.utility(x), factor))
        self.budget.improve_bound(self.bound)
        self.bound_log = min(self.bound_log, problem.log_common_rate(x) + math.log(factor))
        return self.add(allocation)

    @property
    def is_proven(self) -> bool:
        """Whether the relative gap of the best mixture's common rate is so small that the mixture
        counts as optimal.
        """
        return math.expm1(self.bound_log - self.best_log) <= max(self.budget.gap, PROVEN)

    def best_round(self, prices: Floats, extra: Floats) -> tuple[float, Ints]:
        """Return the largest value of a round, and an allocation with this value.

        `prices` are the prices of the clients' rates. `extra` contains the multipliers of the
        minimum rates, which are additional prices of the rates beyond the minimum rates.
        """
        # any multipliers prove a bound; with very large ones the bound has no digits
        prices, extra = prices.copy(), np.minimum(extra, MAX_EXTRA / self.least)
        prices[self.due] += extra
        worth, allocation = best_sum(self.problem, prices, self.budget)
        return worth - float(extra @ self.least), allocation

    def outcome(self) -> Outcome:
        """Return the best mixture, the upper bound and statistics of the search."""
        stats = {
            "mixtures": self.mixtures,
            "rounds": len(self.allocations),
            "entries": len(self.best.schedule),
        }
        bound = max(self.bound, self.problem.utility(self.best.goodput))
        return admitted(self.problem, Outcome(plan=self.best, bound=bound, stats=stats))

    def add(self, allocation: Ints) -> bool:
        """Add a round to the known rounds, and return whether it is new."""
        key = allocation.tobytes()
        if key in self.known:
            return False
        self.known.add(key)
        self.allocations.append(allocation)
        self.rates.append(rates_of(self.problem, allocation))
        if len(self.due):
            self.spare.append(self.spare_of(allocation))
        return True

    def spare_of(self, allocation: Ints) -> Floats:
        """Return the amounts by which a round's rates exceed the minimum rates.

        Only clients that have a minimum rate are included. The server's own token and the first
        draft are subtracted from the minimum rate. Adding them to the other tokens would lose the
        significant digits of those tokens at low acceptance.
        """
        problem, drafts = self.problem, allocation[self.due].astype(np.float64)
        seconds = problem.round_seconds(allocation) if problem.per == "second" else 1.0
        a = problem.acceptance_rates[self.due]
        lacking = self.least * seconds - 1.0 - np.where(drafts > 0.0, a, 0.0)
        return np.asarray((a * gain_of(a, drafts - 1.0) - lacking) / seconds, np.float64)

    def beyond(self, *, finely: bool) -> tuple[Floats, Floats]:
        """Return how much each known round exceeds the minimum rates, in scaled units.

        The result is a tuple (excess, units). Each row of `excess` belongs to one minimum rate and
        is divided by the unit of the row.

        With these units, a solver's tolerance is relative to the change caused by drafts, not to
        the rates. If `finely` is true and some round exceeds a minimum rate, the unit of the row is
        the largest excess of any round. Shortfalls are limited to 1 / DROPPED units, because rounds
        with larger shortfalls would be dropped.
        """
        spare = np.reshape(self.spare, (len(self.rates), len(self.due))).T
        most, unit = spare.max(axis=1), np.abs(spare).max(axis=1)
        unit = np.maximum(unit, 1e-9 * self.least)
        if finely:
            unit = np.where(most > 0.0, np.maximum(most, LAST_DIGITS * self.least), unit)
        return np.maximum(spare / unit[:, None], -1.0 / DROPPED), unit

    def reach_least(self) -> None:
        """Add rounds until some mixture reaches every minimum rate.

        If the minimum rates are missed by no more than the judge tolerates, they are all lowered by
        the same factor, to the largest level that some mixture reaches.

        Raises
        ------
        Infeasible
            If no mixture reaches the minimum rates.
        """
        due, least, per = self.due, self.least, self.problem.per
        free, alone = np.zeros(self.problem.clients), np.zeros(len(due))
        for client, only in enumerate(np.eye(len(due))):
            alone[client], allocation = self.best_round(free, only)
            self.add(allocation)
        short = alone < -least * TOLERANCE
        if short.any():
            best = (least + alone)[short]
            raise too_high(per, due[short], least[short], best, [""] * len(best))
        while True:
            self.budget.check()
            spare, unit = self.beyond(finely=False)
            count = spare.shape[1]
            # Maximise the fraction of the minimum rates that a mixture reaches for all clients that
            # have one; the variable is this fraction minus 1.
            found = best_shares(
                np.append(np.zeros(count), -1.0),
                np.column_stack((-spare, least / unit)),
                np.zeros(len(due)),
                (-1.0, 1.0),
            )
            more = -float(found.fun)
            if more >= TOLERANCE:
                return
            prices = np.maximum(0.0, -found.ineqlin.marginals) / unit
            prices /= prices @ least
            worth, allocation = self.best_round(free, prices)
            if self.add(allocation):
                continue
            part = 1.0 + worth
            if part < 1.0 - TOLERANCE:
                names = ", ".join(
                    f"client {due[i]}: {least[i]:.6g}"
                    for i in np.argsort(-prices * least, kind="stable")[:3]
                )
                raise Infeasible(
                    f"no mixture of rounds reaches all minimum rates, in tokens per {per} ({names}"
                    f"{', ...' if len(due) > 3 else ''}); the best mixture reaches {part:.4%} of"
                    " each rate",
                    [Conflict(constraint="min_goodput", needs=1.0, has=part)],
                )
            shares = np.maximum(0.0, found.x[:-1])
            reached = np.array(self.spare).T @ (shares / shares.sum())
            missing = max(0.0, -max(more, float((reached / least).min())))
            self.lower(least * (missing + LAST_DIGITS if missing > LAST_DIGITS else missing))
            return

    def lower(self, amounts: Floats) -> None:
        """Lower the minimum rates by the given amounts."""
        self.least = self.least - amounts
        self.spare = [one + amounts for one in self.spare]
