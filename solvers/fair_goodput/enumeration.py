"""Brute force: the fairest mixture of all integer allocations, which define the region.

Nothing is assumed about the region or about which rounds are worth mixing, so the other methods are
tested against it, per round and per second. CVXPY states the mixture; the bound comes from the
allocations themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.errors import Infeasible
from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import Floats, Ints
from specopt.models.problem import TOLERANCE
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.fair_goodput.common_rate import raised, slope
from specopt.solvers.fair_goodput.convex import maximise
from specopt.solvers.fair_goodput.method import FairGoodputMethod, admitted, offer_first_plan
from specopt.solvers.fair_goodput.region import LAST_DIGITS
from specopt.solvers.fair_goodput.rounds import mixture, rates_of
from specopt.solvers.method import Outcome
from specopt.solvers.solver_status import termination_of

DROPPED = 1e-10
"""Shares below it are left out of the plan."""

NEAR = 1e-3
"""Columns worth so much less than the best one, relatively, are left out of the second program."""

EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class Enumeration(FairGoodputMethod):
    """Mix all integer allocations by a convex program."""

    name = "enumeration"
    exact = True
    source = "the definition of region (2), paper 5: the hull of mu over all allocations"
    guarantee = "optimal, to 1e-6"
    complexity = "(C + N)! / (C! N!) columns: 2,002 for N = 5, C = 9"
    max_size = 3_000
    size_unit = "allocations"
    bytes_per_part = 4000.0
    tolerance = 1e-6

    def size_of(self, problem: FairGoodputProblem) -> float:
        """Return the number of integer allocations."""
        return count_allocations(problem, self.max_size)

    def run(self, problem: FairGoodputProblem, budget: Budget) -> Outcome:
        """Mix all columns; the best column at the mixture's prices gives the bound."""
        offer_first_plan(problem, budget)
        table = np.array(list(allocations(problem)), np.int64)
        budget.check()
        columns = np.array([rates_of(problem, allocation) for allocation in table]).T
        unit = columns.max(axis=1)  # the tolerances of the solvers are absolute
        columns /= unit[:, None]
        log_weights = np.log(problem.weight) + (1.0 - problem.fairness) * np.log(unit)
        cp = budget.load_library("cvxpy")
        budget.check()
        spare, theta = np.zeros((0, len(table))), None
        if problem.min_goodput is not None:
            spare, theta = beyond_least(problem, table, cp)
        rates, status = fairest_rates(cp, columns, log_weights, problem.fairness, spare, budget)
        stats = {"allocations": len(table), "solver_status": status}
        if rates is None and theta is None:
            budget.check()
            return Outcome(plan=budget.incumbent, termination=termination_of(status), stats=stats)
        if rates is not None:
            worth = slope(rates, log_weights, problem.fairness) @ columns
            near = (
                worth >= (1.0 - NEAR) * worth.max()
            )  # the same again, with fewer columns and rates next to 1
            weights = log_weights + (1.0 - problem.fairness) * np.log(rates)
            polished, _ = fairest_rates(
                cp,
                columns[:, near] / rates[:, None],
                weights,
                problem.fairness,
                spare[:, near],
                budget,
            )
            found = [rates] if polished is None else [rates, rates * polished]
            rates = min(
                found,
                key=lambda x: worth_of_best(columns, x, log_weights, problem.fairness, spare, cp),
            )
            theta = nearest_mixture(columns, rates, spare, cp, theta)
        assert theta is not None
        used = np.flatnonzero(theta > DROPPED)
        plan = mixture(problem, theta[used], table[used])
        budget.offer(plan)
        factor = worth_of_best(
            columns, plan.goodput / unit, log_weights, problem.fairness, spare, cp
        )
        bound = raised(problem, problem.utility(plan.goodput), max(1.0, factor))
        return admitted(
            problem, Outcome(plan=plan, bound=bound, stats=stats | {"entries": len(used)})
        )


def fairest_rates(
    cp: Any, columns: Floats, log_weights: Floats, fairness: float, spare: Floats, budget: Budget
) -> tuple[Floats | None, str]:
    """Return the rates of the fairest mixture of some columns, None if there are none, and the
    solver's status.
    """
    share = cp.Variable(columns.shape[1], nonneg=True)
    x = cp.Variable(len(columns))
    limits = [x == columns @ share, *mixed(cp, share, spare)]
    status = maximise(cp, x, log_weights, fairness, limits, budget)
    if x.value is None or termination_of(status) is not Termination.CONVERGED:
        return None, status
    return np.asarray(columns @ np.maximum(0.0, share.value), np.float64), status


def solve_exactly(cp: Any, program: Any) -> None:
    """Solve a linear program by HiGHS, silently."""
    from specopt.solvers.highs import silent_highs

    with silent_highs():
        program.solve(solver=cp.HIGHS, **EXACT)


def mixed(cp: Any, share: Any, spare: Floats) -> list[Any]:
    """Return the constraints on the shares of columns: they sum to 1, and give the least rates."""
    return [cp.sum(share) == 1.0] + ([spare @ share >= 0.0] if len(spare) else [])


def beyond_least(problem: FairGoodputProblem, table: Ints, cp: Any) -> tuple[Floats, Floats]:
    """Return the rates of allocations beyond the least rates due, and a mixture that gives these.

    Rows are in units of the most that an allocation gives beyond. Drafts gain less and less, so the
    tolerance of a solver is worth a part of the drafts beyond the least rate, whatever one of them
    gains. Shares of columns that lack more than 1 / DROPPED would be dropped. Rows of lowered
    rates, and of rates that no allocation exceeds, are in units of their largest entry. The
    server's own token and the first draft's are taken from the least rate, not added to the others,
    whose digits they would hide at low acceptance. Where the least rates are missed by no more than
    the judge allows, they are lowered to the most that some mixture gives of all of them.

    Raises
    ------
    Infeasible
        If no mixture does.
    """
    assert problem.min_goodput is not None
    due = np.flatnonzero(problem.min_goodput > 0)
    least, a, drafts = problem.min_goodput[due], problem.acceptance_rates[due, None], table.T[due]
    first = np.where(drafts > 0, a, 0.0)
    others = np.where(drafts > 1, a * a * expected_tokens(a, np.maximum(0, drafts - 2)), 0.0)
    seconds = np.array(
        [problem.round_seconds(row) if problem.per == "second" else 1.0 for row in table]
    )

    def beyond(part: float) -> Floats:
        lowered = part * least - LAST_DIGITS * least
        return np.asarray(
            (others - (lowered[:, None] * seconds - 1.0 - first)) / seconds, np.float64
        )

    spare = beyond(1.0)
    size = np.maximum(np.abs(spare).max(axis=1), 1e-12 * least)
    share, more = cp.Variable(len(table), nonneg=True), cp.Variable()  # 1 + more is the part
    limits = [
        (spare / size[:, None]) @ share >= cp.multiply(more, least / size),
        cp.sum(share) == 1.0,
        more <= 0.0,
    ]
    solve_exactly(cp, cp.Problem(cp.Maximize(more), limits))
    part = 1.0 + min(0.0, float(more.value))
    if part >= 1.0 - 1.1 * TOLERANCE:
        kept, theta = beyond(part), np.maximum(0.0, share.value)
        if part == 1.0:
            most = kept.max(axis=1)
            size = np.where(most > 0.0, np.maximum(most, LAST_DIGITS * least), size)
        else:  # the last digits are spent in the part
            kept -= np.minimum(0.0, kept @ theta - LAST_DIGITS * least)[:, None]
        return np.maximum(kept / size[:, None], -1.0 / DROPPED), theta
    alone = due[spare.max(axis=1) < 0.0]
    clients = ", ".join(
        f"client {i} {problem.min_goodput[i]:.6g}" for i in (alone if len(alone) else due)[:3]
    )
    raise Infeasible(
        f"no mixture of allocations reaches the minimum rates (tokens per {problem.per}: "
        f"{clients}): the best reaches {part:.4%} of each"
    )


def nearest_mixture(
    columns: Floats, rates: Floats, spare: Floats, cp: Any, other: Floats | None
) -> Floats:
    """Return the mixture of few columns that lacks the smallest part of some rates and keeps the
    least ones.

    If HiGHS finds none, the other mixture.
    """
    share, off = cp.Variable(columns.shape[1], nonneg=True), cp.Variable()
    limits = [(columns / rates[:, None]) @ share >= 1.0 - off, *mixed(cp, share, spare)]
    solve_exactly(cp, cp.Problem(cp.Minimize(off), limits))
    found: Floats = (
        other if share.value is None and other is not None else np.maximum(0.0, share.value)
    )
    return found


def worth_of_best(
    columns: Floats, rates: Floats, log_weights: Floats, fairness: float, spare: Floats, cp: Any
) -> float:
    """Return a bound on the value of mixtures that keep the least rates, at prices at which some
    rates are worth 1.

    Any multipliers >= 0 of the rates beyond the least ones prove that; HiGHS finds the
    best ones.
    """
    values = slope(rates, log_weights, fairness) @ columns
    if len(spare):
        share = cp.Variable(columns.shape[1], nonneg=True)
        limits = mixed(cp, share, spare)
        solve_exactly(cp, cp.Problem(cp.Maximize(values @ share), limits))
        if limits[1].dual_value is not None:
            values = values + np.maximum(0.0, limits[1].dual_value) @ spare
    return float(values.max())


def count_allocations(problem: FairGoodputProblem, enough: int) -> float:
    """Return the number of integer allocations within budget and caps, or infinity if there are
    more than `enough`.
    """
    if int((problem.max_tokens > 0).sum()) > enough:
        return math.inf
    count = sum(1 for _ in islice(allocations(problem), enough + 1))
    return count if count <= enough else math.inf


def allocations(problem: FairGoodputProblem) -> Iterator[tuple[int, ...]]:
    """Yield every integer allocation within budget and caps."""
    most = problem.max_tokens.tolist()
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
