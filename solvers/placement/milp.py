"""A readable reference formulation of placement as an integer program over patterns of units.

The program is written in Pyomo and solved by HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from specopt.models.errors import Unsupported
from specopt.models.placement.plan import PlacementPlan
from specopt.models.placement.problem import PlacementProblem
from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.formulation import Formulation, Value
from specopt.solvers.method import Outcome
from specopt.solvers.placement.method import PlacementMethod, why_infeasible
from specopt.solvers.placement.patterns import (
    all_patterns,
    count_exact,
    plan_of,
    sign,
    valued,
    widest,
)
from specopt.solvers.placement.prepare import prepare
from specopt.solvers.pyomo_program import ByProgram, run_program

MAX_PATTERNS = 10_000

UNITS = 100.0
"""Value of the most valuable pattern after scaling of the objective.

The objective is scaled because the tolerances of HiGHS are absolute.
"""


@dataclass(frozen=True)
class MilpPlacement(ByProgram, PlacementMethod):
    """Solve an integer program whose variables count the units that use each pattern."""

    name = "milp"
    source = "own; a cutting-stock program over patterns, Pyomo and HiGHS"
    complexity = "exponential at worst; a variable per pattern"
    max_size = MAX_PATTERNS
    size_hint = "fewer clients, drafters or tokens"

    def search(self, problem: PlacementProblem, budget: Budget) -> Outcome:
        """Build the program, solve it, and return the plan."""
        formulation = replace(FORMULATION, state=partial(formulate, budget=budget))
        outcome = run_program(problem, formulation, budget, solver=self.solver)
        if outcome.plan is None and outcome.termination is Termination.INFEASIBLE:
            raise why_infeasible(prepare(problem, True, budget))
        if outcome.plan is None:
            budget.check()
        return outcome


def formulate(problem: PlacementProblem, budget: Budget | None = None) -> Any:
    """Return the integer program over all patterns as a Pyomo model.

    The model is built within the limits of `budget`.

    Raises
    ------
    Unsupported
        If the problem has more than `MAX_PATTERNS` patterns.
    """
    import pyomo.environ as pyo

    if count_exact(problem, MAX_PATTERNS) > MAX_PATTERNS:
        raise Unsupported(
            f"formulation: the problem has more than {MAX_PATTERNS:,} patterns of units"
        )
    prepared = prepare(problem, True, budget)
    patterns = valued(prepared, list(all_patterns(prepared)))
    program = pyo.ConcreteModel()
    program.prepared, program.patterns, program.offset = prepared, patterns, 0.0
    unit = (max((abs(one.value) for one in patterns), default=0.0) or 1.0) / UNITS
    program.unit = sign(problem) * unit
    program.number = pyo.RangeSet(0, len(patterns) - 1)
    program.used = pyo.Var(program.number, domain=pyo.NonNegativeIntegers)  # units with a pattern
    program.types = pyo.RangeSet(0, len(prepared.drafts) - 1)
    # The number of draft units of each type.
    program.drafting = pyo.Var(program.types, domain=pyo.NonNegativeIntegers)
    program.share = pyo.Var(domain=pyo.NonNegativeReals)  # share of the clients served
    pools = problem.draft_pools
    of_pool = [draft.pool for draft in prepared.drafts]

    if problem.objective == "capacity":
        program.unit = 1.0
        program.worth = pyo.Objective(expr=1.0 * program.share, sense=pyo.maximize)
    else:
        gained = sum(one.value / unit * program.used[k] for k, one in enumerate(patterns))
        paid = sum(
            prepared.price_of(of_pool[d]) / unit * program.drafting[d] for d in program.types
        )
        program.worth = pyo.Objective(expr=gained - paid, sense=pyo.maximize)
    served = [one.served(prepared) for one in patterns]

    # Every client is placed once. For the objective "capacity", at least the given share of every
    # class is placed.
    def clients(program: Any, c: int) -> Any:
        placed = sum(served[k][c] * program.used[k] for k in program.number if served[k][c])
        if problem.objective == "capacity":
            return placed - prepared.clients[c] * program.share >= 0
        return placed + 0.0 * program.share == prepared.clients[c]

    program.clients = pyo.Constraint(pyo.RangeSet(0, len(prepared.clients) - 1), rule=clients)
    # The number of used units of a verifier is at most the number of its units.
    side = [prepared.sides[one.side].verifier for one in patterns]
    program.units = pyo.ConstraintList()
    for v, verifier in enumerate(problem.verifiers):
        if v in side:
            program.units.add(
                sum(program.used[k] for k in program.number if side[k] == v) <= verifier.units
            )
    # Draft units hold the clients that refer to them. At least one of these clients has the context
    # and one has the draft length of the type. Units with fewer clients belong to another type.
    program.held = pyo.ConstraintList()
    drafted = [one.drafted(prepared) for one in patterns]
    for d, draft in enumerate(prepared.drafts):
        users = [k for k in program.number if d in drafted[k]]
        held = sum(drafted[k][d] * program.used[k] for k in users)
        units = pools[draft.pool].units
        program.held.add(held - draft.most * program.drafting[d] <= 0)
        program.held.add((draft.least - 1 + 1 / units) * program.drafting[d] - held <= 0)
        for which in (0, 1):
            met = sum(program.used[k] for k in users if widest(prepared, patterns[k], d)[which])
            program.held.add(program.drafting[d] - units * met <= 0)
    for p, pool in enumerate(pools):
        if p in of_pool:
            program.held.add(
                sum(program.drafting[d] for d in program.types if of_pool[d] == p) <= pool.units
            )
    return program


def read(problem: PlacementProblem, program: Any, value: Value) -> PlacementPlan:
    """Return the plan that corresponds to a solution of the program."""
    counts = ((one, round(value(program.used[k]))) for k, one in enumerate(program.patterns))
    return plan_of(program.prepared, {one: count for one, count in counts if count})


FORMULATION = Formulation(formulate, read)
