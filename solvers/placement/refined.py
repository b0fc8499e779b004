"""The method `refined` for `placement`, which searches for plans and proves a bound.

If a problem has few patterns of units, all patterns are listed. Otherwise, patterns are generated
in successively smaller boxes (see `boxes`).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import islice

from specopt.models.placement.problem import PlacementProblem
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.placement.choice import choose, counted
from specopt.solvers.placement.first_plans import first_plans, shared
from specopt.solvers.placement.listing import every
from specopt.solvers.placement.method import PlacementMethod, offer, plain, why_infeasible
from specopt.solvers.placement.patterns import Pattern, all_patterns, sign, undominated, valued
from specopt.solvers.placement.prepare import OBJECTIVES, Prepared, most_options, prepare
from specopt.solvers.placement.relaxation import Duals, Relaxation
from specopt.solvers.placement.rounding import completed, polished, whole_units

FEW_PATTERNS, MANY_PATTERNS = 3000, 3_000_000
"""Limits on the number of patterns that are listed completely.

At the start, up to ten times the first limit are listed: the kernel that lists patterns is used
only above the limit, and only if it is compiled already. The second limit applies at the end, if
optimality is not proven.
"""

EXACT_CLIENTS, EXACT_OPTIONS = 64, 1_000_000
"""Maximum numbers of clients and of options for which the types of draft units are exact.

Exact types distinguish the number of clients, the largest context and the largest draft length.
"""

LISTED_CLIENTS = 5000
"""Maximum total number of clients for which integer patterns near the bound are listed.

If it is larger, attempts to list the patterns of large problems may take time without success.
"""

ROUNDED = 1.03
"""Maximum ratio of the ends of boxes at which each round searches for plans by rounding."""

WHOLE_UNITS = 1.003
"""Maximum ratio of the ends of boxes at which a round lists integer patterns and branches.

The search branches on the numbers of units.
"""

LEAVES = 200
"""Maximum number of leaves of a branch-and-bound search over numbers of units."""

NARROW = tuple(
    1.0 + width for width in (0.1, 0.03, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10)
)
"""Ratio of the ends of a box up to which the box is not split, for each round."""

NEAR = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Fractions of the optimality gap that a listed pattern may lose, in the order of trials.

Small fractions yield few patterns and are therefore tried first. The whole gap is tried last.
"""

BOXES = (16, 40)
"""Numbers of boxes in the integer programs that round the fractional numbers of units.

Programs with few boxes are faster, and programs with many boxes may yield better plans.
"""

SECONDS_PER_PLAN = 2.5
"""Time limit for an integer program that rounds units, in seconds.

If it is larger, plans of large problems may be better, and are found later.
"""


@dataclass(frozen=True)
class Refined(PlacementMethod):
    """Column generation over patterns of units, with a separate relaxation for each box of periods.

    If there are few patterns, an integer program chooses among all patterns that are not dominated.
    Otherwise, the bound comes from the fractional relaxation and from branching on the numbers of
    units. A box is a range of periods or of waits, and the boxes become smaller in every round.
    Plans are found by rounding the fractional numbers of units and clients. Once the boxes are
    small, an integer program chooses among the patterns near the bound. If optimality has still not
    been proven and there are at most a few million patterns, a final integer program chooses among
    all of them.
    """

    name = "refined"
    source = "specopt; Dantzig-Wolfe decomposition by patterns, Lagrangian bounds"
    guarantee = (
        "a bound; optimal if there are few patterns, else within the gap of fractional patterns"
    )
    complexity = "patterns in all, or sides x boxes x options per pricing"

    def search(self, problem: PlacementProblem, budget: Budget) -> Outcome:
        """List all patterns if there are few. Otherwise, generate patterns in boxes."""
        if (simple := plain(problem)) is not problem:
            small = prepare(simple, budget=budget)
            offer(small, shared(small), budget)
        exact = sum(one.clients for one in problem.classes) <= EXACT_CLIENTS
        exact = exact and most_options(problem, exact=True) <= EXACT_OPTIONS
        prepared = prepare(problem, exact, budget)
        for used in first_plans(prepared):
            offer(prepared, used, budget)
        whole = all(draft.context is not None for draft in prepared.drafts)
        patterns = None
        if whole:
            is_ready = budget.load("placement.listing").near.is_ready
            few = FEW_PATTERNS if is_ready else 10 * FEW_PATTERNS
            patterns = list(islice(all_patterns(prepared), few + 1))
            if len(patterns) <= few:
                # The kernel lists patterns in this order.
                patterns.sort(key=lambda one: (one.side, *Counter(dict(one.entries)).elements()))
                patterns = undominated(prepared, valued(prepared, patterns))
            else:
                patterns = every(prepared, 10 * FEW_PATTERNS) if is_ready else None
        if patterns is not None:
            stats = _listed(prepared, patterns, budget)
        else:
            stats = _priced(prepared, whole and sum(prepared.clients) <= LISTED_CLIENTS, budget)
        proven = budget.is_proven(1e-9)
        if not proven:
            budget.check()  # HiGHS may have stopped because of the time limit
        end = Termination.CONVERGED if proven else Termination.EXHAUSTED
        return Outcome.of(budget, termination=end, stats=stats)


def _listed(prepared: Prepared, patterns: list[Pattern], budget: Budget) -> dict[str, int]:
    """Find the best plan over a list of all patterns, and return statistics of the search."""
    budget.check()
    if not patterns and prepared.problem.objective != "capacity":
        raise why_infeasible(prepared)
    bound = _chosen(prepared, patterns, budget)
    if bound == -math.inf:
        _, lost = choose(prepared, [replace(one, value=0.0) for one in patterns], penalty=1.0)
        raise why_infeasible(prepared, sum(prepared.clients) + lost)
    _improve(budget, bound)
    return {"patterns": len(patterns)}


def _chosen(prepared: Prepared, patterns: list[Pattern], budget: Budget) -> float:
    """Choose among patterns, and record the resulting plan if it improves on the incumbent.

    Return an upper bound on the value of every choice.
    """
    used, bound = choose(prepared, patterns, _reached(budget))
    if used is not None:
        offer(prepared, used, budget)
    return bound


def _reached(budget: Budget) -> float:
    """Return the value of the incumbent as a quantity to be maximised, or -inf if there is none."""
    problem: PlacementProblem = budget.problem  # type: ignore[assignment]
    return -math.inf if budget.objective is None else sign(problem) * budget.objective


def _priced(prepared: Prepared, whole: bool, budget: Budget) -> dict[str, int]:
    """Generate patterns in successively smaller boxes, and round the master solution to plans.

    If `whole` is true, integer patterns may be listed, which requires exact types of draft units.
    Return statistics of the search.
    """
    relaxation, rounds = Relaxation(prepared), 0
    if not relaxation.covers and prepared.problem.objective != "capacity":
        raise why_infeasible(prepared)

    def check() -> None:
        if math.isfinite(relaxation.bound):
            _improve(budget, relaxation.bound)
        budget.check()

    for narrow in NARROW:
        relaxation.narrow_to(narrow)
        duals = relaxation.solve(check, max(1e-11, 0.3 * (narrow - 1.0)))
        check()
        rounds += 1
        if relaxation.missing > 1e-6 and rounds == 1:
            _check_feasible(prepared, budget)
        if budget.is_proven(1e-9):
            break
        lists = whole and narrow <= WHOLE_UNITS
        if lists and _near(relaxation, duals, budget, 10):
            break
        of_units = prepared.problem.objective in ("cost", "energy")
        if narrow <= ROUNDED or budget.objective is None:
            quick = of_units and narrow > WHOLE_UNITS
            _round(relaxation, duals, budget, BOXES[:1] if quick else BOXES)
        if narrow <= (ROUNDED if of_units else WHOLE_UNITS) and not budget.is_proven(1e-9):
            _branch(relaxation, budget, 0.3 * (narrow - 1.0))
        if budget.is_proven(1e-9) or (lists and _near(relaxation, duals, budget, 1)):
            break
    if whole and not budget.is_proven(1e-9):
        patterns = every(prepared, MANY_PATTERNS)
        if patterns is not None:
            return _listed(prepared, patterns, budget)
    return {"rounds": rounds, "patterns": len(relaxation.columns)}


def _improve(budget: Budget, value: float) -> None:
    """Record an upper bound on the value of every plan in the budget."""
    problem: PlacementProblem = budget.problem  # type: ignore[assignment]
    budget.improve_bound(problem.widened(sign(problem) * value, problem.scale))


def _round(relaxation: Relaxation, duals: Duals, budget: Budget, numbers: tuple[int, ...]) -> None:
    """Round a solution of the master program to plans, and record these plans in the budget.

    Rounding is repeated for each number of boxes in `numbers`, until a plan reaches the bound. For
    the objective "capacity" on few units, integer numbers of clients are tried first.
    """
    prepared = relaxation.prepared
    if relaxation.capacity and relaxation.few:
        numbers = 0, *numbers
    for boxes in numbers:
        units = whole_units(relaxation, duals, boxes, min(SECONDS_PER_PLAN, 0.5 * budget.remaining))
        whole = completed(prepared, units)
        of_units = prepared.problem.objective in ("capacity", "cost")
        if offer(prepared, whole, budget) is not None and not of_units:
            offer(prepared, polished(prepared, whole), budget)
        if budget.is_proven(1e-9):
            break


def _branch(relaxation: Relaxation, budget: Budget, gap: float) -> None:
    """Improve the bound by best-first branch and bound on the numbers of units.

    The search branches on the total number of units, on the number of units of each verifier and,
    for the objective "energy", on the numbers of units that are always busy.
    """
    prepared, problem = relaxation.prepared, relaxation.prepared.problem
    first = relaxation.least, relaxation.most, relaxation.last, relaxation.bound
    nodes = [(-relaxation.bound, relaxation.least, relaxation.most)]
    ends: list[float] = []
    while nodes and len(ends) < LEAVES:
        value, least, most = heappop(nodes)
        _improve(budget, max(-value, *ends, -math.inf))
        reached = enough = _reached(budget)
        if reached > -math.inf:
            enough += max(budget.gap, 0.5e-9) * abs(reached)
        if (ends and max(ends) >= -value) or -value <= enough:
            ends.append(-value)
            break
        relaxation.least, relaxation.most, relaxation.bound = least, most, -value
        duals = relaxation.solve(budget.check, gap)
        if relaxation.bound <= reached:
            continue
        used = [0.0] * len(least)
        for column, amount in relaxation.used:
            is_full = problem.objective == "energy" and column.is_full
            for kind in counted(problem, prepared.sides[column.side].verifier, is_full):
                used[kind] += amount
        apart = [abs(number - round(number)) for number in used]
        totals = [kind for kind in (len(used) // 2 - 1, len(used) - 1) if apart[kind] > 1e-6]
        v = totals[0] if totals else max(range(len(used)), key=apart.__getitem__)
        if apart[v] <= 1e-6:
            ends.append(relaxation.bound)
            if relaxation.bound > enough:
                _round(relaxation, duals, budget, BOXES)
            continue
        down, up = list(most), list(least)
        down[v], up[v] = math.floor(used[v]), math.ceil(used[v])
        heappush(nodes, (-relaxation.bound, least, down))
        heappush(nodes, (-relaxation.bound, up, most))
    _improve(budget, max(_reached(budget), *ends, *(-value for value, _, _ in nodes[:1])))
    # The bound of a branch applies only to the plans of that branch.
    relaxation.least, relaxation.most, relaxation.last, relaxation.bound = first


def _near(relaxation: Relaxation, duals: Duals, budget: Budget, divisor: int) -> bool:
    """Choose among all integer patterns that can occur in a better plan.

    Return whether this succeeded. The patterns that lose least are listed first to find a good
    plan. The better this plan is, the fewer patterns need to be listed. The limit on the number of
    patterns is divided by `divisor`.
    """
    prepared = relaxation.prepared
    for share in (*NEAR, 1.0):
        reached = _reached(budget)
        if reached == -math.inf:
            return False
        lost = (relaxation.last - reached) * (1.0 + 1e-9) + 1e-9 * abs(reached)
        if share == NEAR[0]:
            relaxation.split_near(duals, lost, budget.check)
        patterns = relaxation.near(duals, share * lost, divisor)
        if patterns is None:
            return False
        bound = _chosen(prepared, undominated(prepared, patterns), budget)
    _improve(budget, max(bound, reached))
    return True


def _check_feasible(prepared: Prepared, budget: Budget) -> None:
    """Raise `Infeasible` if even fractional patterns cannot serve all clients."""
    free = replace(prepared, objective=OBJECTIVES.index("capacity"))
    relaxation = Relaxation(free, narrow=1.01, penalty=1.0)
    relaxation.solve(budget.check, 1e-6)
    if relaxation.bound < -1e-6 * sum(prepared.clients):
        raise why_infeasible(prepared, sum(prepared.clients) + relaxation.bound)
