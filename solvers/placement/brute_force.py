"""The method `brute-force` for `placement`.

It enumerates every pattern of every unit and every distribution of clients over units. The other
methods are tested against this method.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from operator import sub

from specopt.models.placement.problem import PlacementProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.placement.method import PlacementMethod, offer, why_infeasible
from specopt.solvers.placement.patterns import (
    Pattern,
    Use,
    all_patterns,
    sign,
    undominated,
    valued,
)
from specopt.solvers.placement.prepare import Prepared, prepare


@dataclass(frozen=True)
class BruteForcePlacement(PlacementMethod):
    """Enumerate all combinations of patterns by adding one unit at a time."""

    name = "brute-force"
    exact = True
    source = "enumeration of all plans, with any number of draft units up to the number of clients"
    guarantee = "optimal"
    complexity = "O(patterns x ways to share the clients x units)"
    max_size = 20_000
    size_hint = "fewer clients, drafters or tokens"

    def search(self, problem: PlacementProblem, budget: Budget) -> Outcome:
        """Extend every reachable combination of served clients by one unit at a time."""
        prepared = prepare(problem, True, budget)
        patterns = undominated(prepared, valued(prepared, list(all_patterns(prepared))))
        nobody: Use = ((0,) * len(problem.classes), ())
        states: dict[Use, tuple[float, tuple[Pattern, ...]]] = {nobody: (0.0, ())}
        for v, verifier in enumerate(problem.verifiers):
            mine = [
                (one, one.use(prepared))
                for one in patterns
                if prepared.sides[one.side].verifier == v
            ]
            for _ in range(verifier.units):
                after = dict(states)
                for state, (value, units) in states.items():
                    budget.check()
                    budget.hold("states of what is served", 1000.0 * len(after))
                    for one, use in mine:
                        to = _joined(state, use)
                        left = map(sub, prepared.clients, to[0])
                        if problem.objective != "capacity" and min(left) < 0:
                            continue
                        if to not in after or value + one.value > after[to][0]:
                            after[to] = value + one.value, (*units, one)
                states = after
        best, chosen = -math.inf, None
        for state, (value, units) in states.items():
            total = _total(prepared, state, value)
            if total > best:
                best, chosen = total, units
        if chosen is None:
            raise why_infeasible(prepared)
        plan = offer(prepared, Counter(chosen), budget)
        bound = budget.objective if plan is not None else sign(problem) * best
        return Outcome(
            plan=plan, bound=bound, stats={"patterns": len(patterns), "states": len(states)}
        )


def _joined(state: Use, use: Use) -> Use:
    served = tuple(map(sum, zip(state[0], use[0], strict=True)))
    drafted = {d: (count, context, length) for d, count, context, length in state[1]}
    for d, count, context, length in use[1]:
        before = drafted.get(d, (0, False, False))
        drafted[d] = before[0] + count, before[1] or context, before[2] or length
    return served, tuple(sorted((d, *of) for d, of in drafted.items()))


def _total(prepared: Prepared, state: Use, value: float) -> float:
    """Return the objective value of a state after paying for its draft units.

    A state consists of the clients served so far and their use of draft units. The value is -inf if
    a pool has too few units or a type of draft units does not fit its clients. It is also -inf if a
    client is not served, unless the objective is "capacity".
    """
    problem = prepared.problem
    used = [0] * len(problem.draft_pools)
    for d, count, context, length in state[1]:
        of = prepared.drafts[d]
        units = -(-count // of.most)
        if not (context and length) or -(-count // units) < of.most:
            return -math.inf
        used[of.pool] += units
    for p, number in enumerate(used):
        value -= prepared.price_of(p) * number
        if number > problem.draft_pools[p].units:
            return -math.inf
    if problem.objective == "capacity":
        return min(count / most for count, most in zip(state[0], prepared.clients, strict=True))
    return value if list(state[0]) == prepared.clients else -math.inf
