"""Every integer allocation as a column, and the fairest mixture of all of them: the region by its definition.

Nothing is assumed about the region or about which rounds are worth mixing, so it is the oracle of the other methods,
per round and per second. CVXPY states the mixture; the bound comes from the allocations themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from specopt.models.errors import Infeasible
from specopt.models.fair_goodput import FairGoodputProblem
from specopt.models.fields import Floats
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.common_rate import prices_at, raised
from specopt.solvers.fair_goodput.convex import SOLVED, run_clarabel, utility
from specopt.solvers.fair_goodput.method import FairGoodputMethod, offer_first_plan
from specopt.solvers.fair_goodput.rounds import mixture, rates_of
from specopt.solvers.method import Outcome

DROPPED = 1e-10
"""Shares below it are left out of the plan."""

NEAR = 1e-3
"""Columns worth so much less than the best one, relatively, are left out of the second program."""

EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Enumeration(FairGoodputMethod):
    """All integer allocations, mixed by a convex program."""

    name: ClassVar[str] = "enumeration"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "the definition of region (2), paper 5: the hull of mu over all allocations"
    guarantee: ClassVar[str] = "optimal, to 1e-6"
    complexity: ClassVar[str] = "(C + N)! / (C! N!) columns: 2,002 for N = 5, C = 9"
    max_size: ClassVar[int] = 3_000
    size_unit: ClassVar[str] = "allocations"
    tolerance: ClassVar[float] = 1e-6

    def size_of(self, problem: FairGoodputProblem) -> float:
        """Return the number of integer allocations."""
        return count_allocations(problem, self.max_size)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Mix all columns; the best column at the mixture's prices gives the bound."""
        offer_first_plan(problem, budget)
        table = np.array(list(allocations(problem)), dtype=np.int64)
        budget.check()
        columns = np.array([rates_of(problem, allocation) for allocation in table]).T
        least = np.zeros(problem.clients) if problem.min_goodput is None else problem.min_goodput
        unit = float(columns.max())  # the tolerances of the solvers are absolute
        columns, least = columns / unit, least / unit
        cp = budget.load_library("cvxpy")
        budget.check()
        if problem.min_goodput is not None:
            check_least(problem, columns, least, unit, cp)
        rates, status = fairest_rates(cp, problem, columns, least, budget)
        stats = {"allocations": len(table), "solver_status": status}
        if rates is None:
            ended = Termination.TIME_LIMIT if status == cp.USER_LIMIT else Termination.CONVERGED
            return Outcome(plan=budget.incumbent, termination=ended, stats=stats)
        worth = prices_at(problem, rates) @ columns
        near = worth >= (1.0 - NEAR) * worth.max()  # the same again with fewer columns is more accurate as a rule
        polished, _ = fairest_rates(cp, problem, columns[:, near], least, budget)
        found = [rates] if polished is None else [rates, polished]
        rates = min(found, key=lambda x: worth_of_best(problem, columns, x, least, cp))
        theta = nearest_mixture(columns, rates, least, cp)
        used = np.flatnonzero(theta > DROPPED)
        plan = mixture(problem, theta[used], table[used])
        budget.offer(plan)
        factor = worth_of_best(problem, columns, plan.goodput / unit, least, cp)
        bound = raised(problem, problem.utility(plan.goodput), max(1.0, factor))
        return Outcome(plan=plan, bound=bound, stats=stats | {"entries": len(used)})


def fairest_rates(
    cp: Any, problem: FairGoodputProblem, columns: Floats, least: Floats, budget: Budget
) -> tuple[Floats | None, str]:
    """Return the rates of the fairest mixture of some columns, None if there are none, and the solver's status."""
    share = cp.Variable(columns.shape[1], nonneg=True)
    x = cp.Variable(problem.clients)
    constraints = [x == columns @ share, cp.sum(share) == 1.0, x >= least]
    status = run_clarabel(cp, cp.Problem(cp.Maximize(utility(cp, problem, x)), constraints), budget)
    if x.value is None or status not in SOLVED:
        return None, status
    return np.asarray(x.value, dtype=np.float64), status


def solve_exactly(cp: Any, program: Any) -> None:
    """Solve a linear program by HiGHS, silently."""
    from specopt.solvers.highs import silent_highs

    with silent_highs():
        program.solve(solver=cp.HIGHS, **EXACT)


def check_least(problem: FairGoodputProblem, columns: Floats, least: Floats, unit: float, cp: Any) -> None:
    """Make sure that some mixture gives all least rates, which are in a unit.

    Raises
    ------
    Infeasible
        If none does.
    """
    due = np.flatnonzero(least > 0)
    share, reach = cp.Variable(columns.shape[1], nonneg=True), cp.Variable()
    limits = [columns[due] @ share >= cp.multiply(reach, least[due]), cp.sum(share) == 1.0, reach <= 2.0]
    solve_exactly(cp, cp.Problem(cp.Maximize(reach), limits))
    if reach.value >= 1.0 - 1e-10:
        return
    alone = np.flatnonzero(columns.max(axis=1) < least)
    clients = ", ".join(f"client {i} {unit * least[i]:.6g}" for i in (alone if len(alone) else due)[:3])
    raise Infeasible(
        f"no mixture of allocations gives the minimum rates (tokens per {problem.per}: {clients}): "
        f"at best {float(reach.value):.4%} of all of them"
    )


def nearest_mixture(columns: Floats, rates: Floats, least: Floats, cp: Any) -> Floats:
    """Return the mixture of few columns that lacks the smallest part of some rates and keeps the least ones."""
    share, off = cp.Variable(columns.shape[1], nonneg=True), cp.Variable()
    unit = 1.0 / rates
    limits = [columns @ share >= least, (columns * unit[:, None]) @ share >= 1.0 - off, cp.sum(share) == 1.0]
    solve_exactly(cp, cp.Problem(cp.Minimize(off), limits))
    return np.maximum(0.0, np.asarray(share.value, dtype=np.float64))


def worth_of_best(problem: FairGoodputProblem, columns: Floats, rates: Floats, least: Floats, cp: Any) -> float:
    """Return what the best mixture that keeps the least rates is worth, at prices at which some rates are worth 1."""
    values = prices_at(problem, rates) @ columns
    if not least.any():
        return float(values.max())
    share = cp.Variable(columns.shape[1], nonneg=True)
    best = cp.Problem(cp.Maximize(values @ share), [columns @ share >= least, cp.sum(share) == 1.0])
    solve_exactly(cp, best)
    return float(best.value)


def count_allocations(problem: FairGoodputProblem, enough: int) -> float:
    """Return the number of integer allocations within budget and caps, or infinity if there are more than `enough`."""
    if int((problem.most_tokens > 0).sum()) > enough:
        return math.inf
    count = sum(1 for _ in islice(allocations(problem), enough + 1))
    return count if count <= enough else math.inf


def allocations(problem: FairGoodputProblem) -> Iterator[tuple[int, ...]]:
    """Yield every integer allocation within budget and caps."""
    most = problem.most_tokens.tolist()
    current = [0] * len(most)
    spare = problem.budget_tokens
    while True:
        yield tuple(current)
        for i in range(len(most)):  # the next one, as an odometer counts
            if spare > 0 and current[i] < most[i]:
                current[i] += 1
                spare -= 1
                break
            spare += current[i]
            current[i] = 0
        else:
            return
