"""A readable reference formulation of verification batching as an integer program.

It represents one epoch of problem (13)-(15) of paper 2, and is written in Pyomo and solved by
HiGHS.

The program does not use thresholds. Instead, every request has a row for its deadline.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.verification_batch.problem import (
    VerificationBatchPlan,
    VerificationBatchProblem,
)
from specopt.solvers.budget import Budget
from specopt.solvers.formulation import Formulation, Value, check_size
from specopt.solvers.method import Outcome
from specopt.solvers.pyomo_program import ByProgram, believed, solve_program
from specopt.solvers.verification_batch.method import VerificationBatchMethod, plan_of
from specopt.solvers.verification_batch.prepare import Prepared

UNITS = 1e4
"""Scaled size of the limits on time and memory, and of the largest value.

The program is scaled because HiGHS has absolute tolerances of 1e-6 and less.
"""


@dataclass(frozen=True)
class MilpBatch(ByProgram, VerificationBatchMethod):
    """Solve an integer program with one binary variable and one deadline row per request.

    One more row limits the memory. The limits in the rows include the judge's tolerance, and HiGHS
    may violate the rows by its own feasibility tolerance. Every batch that the judge accepts is
    therefore feasible in the program, so the program's bound is valid. If the judge rejects a
    solution, a row that excludes its combination of requests is added, and HiGHS starts again.
    """

    name = "milp"
    source = "specopt; paper 2, Eq. 13-15 at one epoch, Pyomo and HiGHS"
    complexity = "exponential at worst; n binaries, n + 2 rows"
    max_size = 300

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Formulate the program, solve it, and round its solution to a batch."""
        stats: dict[str, Any] = {"nodes": 0, "programs": 0}
        if len(prepared.items) == 0:
            return Outcome(plan=budget.incumbent, bound=0.0, stats=stats)
        program = formulate(prepared.problem)
        while True:
            budget.check()
            solved = solve_program(program, budget, presolve=False, solver=self.solver)
            stats["nodes"] += solved.nodes
            stats["programs"] += 1
            if solved.bound is not None:
                budget.improve_bound(solved.bound * program.unit)
            if not solved.has_solution:
                break
            values = solved.values()
            chosen = [k for k in program.pending if values[program.takes[k]] > 0.5]
            batch = [int(prepared.items[k]) for k in chosen]
            if prepared.admits(batch):
                budget.offer(plan_of(batch))
                break
            program.refused.add(
                sum(program.takes[k] for k in cover(prepared, chosen)) <= len(chosen) - 1
            )
        return Outcome.of(
            budget,
            termination=believed(solved, budget),
            stats=stats,
        )


def formulate(problem: VerificationBatchProblem) -> Any:
    """Return the integer program as a Pyomo model.

    Times are scaled by the longest time that a request's deadline leaves for the batch, and memory
    by the available memory. Hopeless requests and requests without value are left out;
    `prepared.items` contains the remaining requests.

    Raises
    ------
    Unsupported
        If the program is too large.
    """
    import pyomo.environ as pyo

    prepared = Prepared(problem)
    count = len(prepared.items)
    check_size(count + 1, count, count * (count + 3))
    *columns, memory_room = prepared.columns
    values, seconds, memory, rooms = (column.tolist() for column in columns)
    longest, bytes_ = max(rooms, default=0.0) / UNITS or 1.0, memory_room / UNITS or 1.0

    program = pyo.ConcreteModel()
    program.unit = unit = max(values, default=0.0) / UNITS or 1.0
    program.offset = 0.0
    program.items = prepared.items
    program.pending = pyo.RangeSet(0, len(values) - 1)
    program.takes = pyo.Var(program.pending, domain=pyo.Binary)  # the request is in the batch
    # Eq. 19 of the batch, without a variable of its own: with such a variable, HiGHS loses
    # feasible batches if rows are nearly tight
    time = sum(seconds[k] / longest * program.takes[k] for k in program.pending)

    program.worth = pyo.Objective(
        expr=sum(values[k] / unit * program.takes[k] for k in program.pending), sense=pyo.maximize
    )
    # Eq. 14
    program.memory = pyo.Constraint(
        rule=lambda p: (
            sum(memory[k] / bytes_ * p.takes[k] for k in p.pending) <= memory_room / bytes_
            if any(memory)
            else pyo.Constraint.Skip
        )
    )
    # Eq. 15: every request in the batch meets its deadline; others allow the longest room.
    program.due = pyo.Constraint(
        program.pending,
        rule=lambda p, k: (
            time <= rooms[k] / longest + (max(rooms) - rooms[k]) / longest * (1.0 - p.takes[k])
            if any(seconds)
            else pyo.Constraint.Skip
        ),
    )
    if not values:  # solvers require at least one column and one row
        program.idle = pyo.Var(domain=pyo.Binary)
        program.nothing = pyo.Constraint(expr=program.idle <= 1)
    program.refused = (
        pyo.ConstraintList()
    )  # batches that exceed a limit by less than HiGHS can tell
    return program


def read(problem: VerificationBatchProblem, program: Any, value: Value) -> VerificationBatchPlan:
    """Return the plan that corresponds to a solution of the program."""
    return plan_of(
        [int(program.items[k]) for k in program.pending if value(program.takes[k]) > 0.5]
    )


FORMULATION = Formulation(formulate, read)


def cover(prepared: Prepared, chosen: Sequence[int]) -> list[int]:
    """Return a set of positions for a constraint that excludes the infeasible batch `chosen`.

    No feasible batch contains as many positions of the set as `chosen` does. The set contains the
    chosen requests. It also contains every request that needs at least as much of every resource as
    each chosen request and whose deadline is no later.
    """
    problem, items = prepared.problem, prepared.items
    heavy = np.ones(len(items), np.bool_)
    for column in (
        problem.new_tokens,
        problem.cached_tokens,
        problem.request_memory_bytes,
        -problem.deadline_seconds,
    ):
        heavy &= column[items] >= column[items[chosen]].max()
    heavy[chosen] = True
    return [int(k) for k in np.flatnonzero(heavy)]
