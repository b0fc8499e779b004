"""One epoch of problem (13)-(15) of paper 2 as an integer program, to be read; Pyomo states it, HiGHS solves it.

Nothing is assumed about thresholds: every request has its own row for its own deadline.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from specopt.models.verification_batch import VerificationBatchProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.pyomo_program import solve_program
from specopt.solvers.verification_batch.method import VerificationBatchMethod, offer_first_plan, plan_of
from specopt.solvers.verification_batch.prepare import Prepared

UNITS = 100.0
"""The value of all items in the program's own unit: the tolerances of HiGHS are absolute."""


@dataclass(frozen=True)
class MilpBatch(VerificationBatchMethod):
    """One binary per request, one row for the memory, one per request for its deadline."""

    name: ClassVar[str] = "milp"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; paper 2, Eq. 13-15 at one epoch, Pyomo and HiGHS"
    guarantee: ClassVar[str] = "optimal, to 1e-6"
    complexity: ClassVar[str] = "exponential at worst; n binaries, n + 2 rows"
    max_size: ClassVar[int] = 300
    tolerance: ClassVar[float] = 1e-6

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """State the program, solve it, and round its solution."""
        prepared = Prepared(problem)
        offer_first_plan(prepared, budget)
        stats = {"hopeless": prepared.hopeless}
        if len(prepared.items) == 0:
            return Outcome(plan=budget.incumbent, bound=0.0, stats=stats)
        unit = math.fsum(prepared.columns[0]) / UNITS
        program = formulate(prepared, unit)
        budget.check()
        solved = solve_program(program, budget)
        if solved.bound is not None:
            budget.improve_bound(solved.bound * unit)
        if solved.has_solution:
            values = solved.values(list(program.takes.values()))
            batch = [int(prepared.items[k]) for k in program.pending if values[program.takes[k]] > 0.5]
            if prepared.admits(batch):  # it may exceed a limit by the tolerances of HiGHS
                budget.offer(plan_of(batch))
        return Outcome(
            plan=budget.incumbent,
            bound=budget.bound,
            termination=solved.termination,
            stats={"nodes": solved.nodes, **stats},
        )


def formulate(prepared: Prepared, unit: float) -> Any:
    """Return the program as a Pyomo model; times are in units of the longest room, memory of what there is.

    Parameters
    ----------
    prepared
        The requests; hopeless ones and those worth nothing stay out.
    unit
        Unit of the objective in the program.
    """
    import pyomo.environ as pyo

    values, seconds, memory, deadlines = (column.tolist() for column in prepared.columns)
    _, c, M = prepared.clock
    room = [due - c for due in deadlines]
    longest, bytes_ = max(room) or 1.0, M or 1.0

    program = pyo.ConcreteModel()
    program.pending = pyo.RangeSet(0, len(values) - 1)
    program.takes = pyo.Var(program.pending, domain=pyo.Binary)  # the request is in the batch
    program.time = pyo.Var(bounds=(0.0, 1.0))  # sum of the weights of the batch

    program.worth = pyo.Objective(
        expr=sum(values[k] / unit * program.takes[k] for k in program.pending), sense=pyo.maximize
    )
    # Eq. 19
    program.adds = pyo.Constraint(
        expr=program.time == sum(seconds[k] / longest * program.takes[k] for k in program.pending)
    )
    # Eq. 14
    program.memory = pyo.Constraint(
        expr=sum(memory[k] / bytes_ * program.takes[k] for k in program.pending) <= M / bytes_
    )
    # Eq. 15: a member's deadline holds; whoever is not a member leaves the longest room.
    program.due = pyo.Constraint(
        program.pending, rule=lambda p, k: p.time <= room[k] / longest + (1.0 - room[k] / longest) * (1.0 - p.takes[k])
    )
    return program
