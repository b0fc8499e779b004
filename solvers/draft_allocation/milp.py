"""A reference formulation of Eq. 5 of paper 5, as an integer program in Pyomo that HiGHS solves.

Every client chooses one draft length, and the value of each length is input data. The program makes
no assumptions about the shape of mu_i, so it can be used to check the methods that rely on
concavity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_allocation.method import DraftAllocationMethod, offer_first_plan
from specopt.solvers.formulation import Formulation, Value, check_size
from specopt.solvers.method import Outcome
from specopt.solvers.pyomo_program import ByProgram, run_program

UNITS = 1e4
"""Objective value, after scaling, of the plan without drafts. The program is scaled because the
tolerances of HiGHS are absolute.
"""


@dataclass(frozen=True)
class MilpAllocation(ByProgram, DraftAllocationMethod):
    """A method that solves an integer program. The program has one binary variable for each pair of
    client and draft length, and a budget constraint.
    """

    name = "milp"
    source = "own; Eq. 5 of paper 5 as a choice of one length per client, Pyomo and HiGHS"
    complexity = "exponential at worst; sum over clients of min(C, cap) + 1 binaries"
    max_size = 5_000
    size_unit = "pairs of client and draft length"

    def size_of(self, problem: DraftAllocationProblem) -> float:
        """Return the number of binary variables."""
        lengths: int = sum(problem.caps.tolist())
        return lengths + problem.clients

    def run(self, problem: DraftAllocationProblem, budget: Budget) -> Outcome:
        """Formulate the program, solve it, and convert its solution to a plan."""
        offer_first_plan(problem, budget)
        return run_program(problem, FORMULATION, budget, solver=self.solver)


def formulate(problem: DraftAllocationProblem) -> Any:
    """Formulate the integer program as a Pyomo model.

    Raises
    ------
    Unsupported
        If the program is too large.
    """
    import pyomo.environ as pyo

    binaries = sum(problem.caps.tolist()) + problem.clients
    check_size(problem.clients + 1, binaries, 2 * binaries)

    program = pyo.ConcreteModel()
    program.unit = unit = float(problem.weights.sum()) / UNITS or 1.0
    program.offset = 0.0
    caps = problem.caps.tolist()
    # w mu(S) for S = 0, 1, ..., summed term by term
    value = [
        float(weight) / unit * np.cumsum(float(rate) ** np.arange(cap + 1.0))
        for weight, rate, cap in zip(problem.weights, problem.acceptance_rates, caps, strict=True)
    ]
    program.clients = pyo.RangeSet(0, problem.clients - 1)
    program.lengths = pyo.Set(
        initialize=[(i, S) for i in program.clients for S in range(caps[i] + 1)]
    )
    program.drafts = pyo.Var(program.lengths, domain=pyo.Binary)  # 1 if client i drafts S tokens

    program.worth = pyo.Objective(
        expr=sum(float(value[i][S]) * program.drafts[i, S] for i, S in program.lengths),
        sense=pyo.maximize,
    )
    # Every client has exactly one draft length.
    program.one = pyo.Constraint(
        program.clients, rule=lambda p, i: sum(p.drafts[i, S] for S in range(caps[i] + 1)) == 1
    )
    # The server verifies at most C tokens.
    program.budget = pyo.Constraint(
        expr=sum(S * program.drafts[i, S] for i, S in program.lengths) <= problem.budget_tokens
    )
    return program


def read(problem: DraftAllocationProblem, program: Any, value: Value) -> DraftAllocationPlan:
    """Convert a solution of the integer program to a plan."""
    drafts = np.zeros(problem.clients, np.int64)
    for client, length in program.lengths:
        if value(program.drafts[client, length]) > 0.5:
            drafts[client] = length
    return DraftAllocationPlan(draft_tokens=drafts)


FORMULATION = Formulation(formulate, read)
