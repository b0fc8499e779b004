"""A readable reference formulation of prompt chunking as a mixed-integer linear program.

The program is written in Pyomo and can be solved by any MILP solver.

A plan is a path over the possible chunk ends. For each of them, variables represent the times at
which the chunk that ends there has left every resource. If a chunk is selected, the times at its
end are determined by the times at its start, as in the event model of
`specopt.models.prompt_chunking.problem`. The program makes no assumptions about good plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.prompt_chunking.problem import PromptChunkingPlan, PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.formulation import Formulation, Value, check_size
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.method import (
    PromptChunkingMethod,
    offer_first_plan,
    places,
    plan_of,
)
from specopt.solvers.pyomo_program import ByProgram, run_program

BYTES_PER_ROW = 12_000.0

UNITS = 100.0
"""Time to first token of the one-chunk plan, in the program's unit of time.

Times are scaled because the tolerances of HiGHS are absolute.
"""


@dataclass(frozen=True)
class MilpChunking(ByProgram, PromptChunkingMethod):
    """Solve an integer program for a path over the possible chunk ends.

    The times at each chunk end are variables of the program.
    """

    name = "milp"
    source = "specopt; paper 4, Sec. 3.3, as a path with times, Pyomo and HiGHS"
    complexity = (
        "exponential; M^2 / 2 binaries and M^2 P rows over M positions where a chunk may end"
    )
    max_size = 24

    def bytes_needed(self, problem: PromptChunkingProblem) -> dict[str, float]:
        """Return the required memory in bytes by purpose, including the memory for the program."""
        rows = 0.5 * places(problem) ** 2 * problem.pipeline_length
        return super().bytes_needed(problem) | {
            "pairs of positions times pipeline_length": BYTES_PER_ROW * rows
        }

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Formulate the program, solve it, and extract the path of chunks."""
        offer_first_plan(problem, budget)
        return run_program(problem, FORMULATION, budget, 1e-9, solver=self.solver)


def formulate(problem: PromptChunkingProblem) -> Any:
    """Return the mixed-integer program as a Pyomo model.

    Times are relative to the time of the one-chunk plan.

    Raises
    ------
    Unsupported
        If the program is too large.
    """
    import pyomo.environ as pyo

    N, step = problem.prompt_tokens, problem.grid_tokens or 1
    M, clocks = places(problem), 3 + problem.pipeline_length
    pairs = M * (M + 1) // 2
    check_size(
        clocks * pairs + M + 3,
        pairs + clocks * (M + 1),
        (4 * clocks + 3) * pairs - (clocks + 1) * M + 1,
    )
    ends = [*range(0, N, step), N]
    whole = problem.evaluate(plan_of([N])).objective
    program = pyo.ConcreteModel()
    program.unit = unit = whole / UNITS or 1.0
    program.offset = 0.0

    # Sets
    program.places = pyo.RangeSet(0, M)
    program.chunks = pyo.Set(initialize=[(i, j) for j in range(1, M + 1) for i in range(j)])
    program.resources = pyo.RangeSet(0, clocks - 1)

    # Variables: whether a chunk spans the tokens between two places, and when the chunk that ends
    # at a place has left a resource.
    program.takes = pyo.Var(program.chunks, domain=pyo.Binary)
    program.left = pyo.Var(program.resources, program.places, domain=pyo.NonNegativeReals)

    # Objective: time to the first token.
    program.first_token = pyo.Objective(
        expr=program.left[clocks - 1, M] + problem.head_seconds / unit
    )
    program.known = pyo.Constraint(expr=program.first_token.expr <= UNITS * (1 + 1e-9))

    # The chunks form a path from the first token to the last.
    program.path = pyo.Constraint(
        program.places,
        rule=lambda p, k: (
            sum(p.takes[i, k] for i in range(k)) + int(k == 0)
            == sum(p.takes[k, j] for j in range(k + 1, M + 1)) + int(k == M)
        ),
    )
    program.most = pyo.Constraint(
        expr=sum(program.takes[c] for c in program.chunks) <= problem.chunk_limit
    )

    # A chunk passes through the resources in order.
    uses = resources(problem, {(i, j): ends[j] - ends[i] for i, j in program.chunks})

    def passes(p: Any, r: int, j: int) -> Any:
        arrived = p.left[r - 1, j] if r else 0.0
        seconds, lag, _ = uses[r]
        busy = sum(seconds[i, j] / unit * p.takes[i, j] for i in range(j))
        return p.left[r, j] >= arrived + lag / unit + busy

    def in_turn(p: Any, r: int, i: int, j: int) -> Any:
        """Return the constraint that chunk i..j follows the chunk that ends at boundary i.

        The big-M constant is based on the time of the one-chunk plan, which no relevant time
        exceeds.
        """
        if i == 0:
            return pyo.Constraint.Skip
        seconds, _, wait = uses[r]
        least = (seconds[i, j] + wait) / unit
        return p.left[r, j] >= p.left[r, i] + least - (UNITS + least) * (1 - p.takes[i, j])

    program.passes = pyo.Constraint(program.resources, pyo.RangeSet(1, M), rule=passes)
    program.in_turn = pyo.Constraint(program.resources, program.chunks, rule=in_turn)
    return program


def resources(
    problem: PromptChunkingProblem, size: dict[tuple[int, int], int]
) -> list[tuple[dict[tuple[int, int], float], float, float]]:
    """Return the resources in the order in which a chunk passes through them.

    The resources are the device, the uplink, the stages in the cloud, and the downlink. Each entry
    is a tuple (times, lag, wait), in seconds. `times` contains the time that each chunk occupies
    the resource. `lag` is the minimum time from a chunk's end at the previous resource to the
    chunk's start at this resource. `wait` is the minimum time between two chunks.
    """
    g, mu, P = problem.cloud_delay, problem.background_tokens, problem.pipeline_length
    upload_token = problem.bytes_per_token / problem.uplink_bytes_per_second
    download_token = problem.bytes_per_token / problem.downlink_bytes_per_second
    local = {
        c: problem.local_overhead_seconds + problem.local_seconds_per_token * x
        for c, x in size.items()
    }
    up = {c: problem.message_overhead_seconds + upload_token * x for c, x in size.items()}
    busy = {c: g.at(mu + x) / P for c, x in size.items()}
    M = max(j for _, j in size)
    back = {
        c: download_token * (x if problem.download == "all" else 1.0 if c[1] == M else 0.0)
        for c, x in size.items()
    }
    latency, wait = problem.link_latency_seconds, g.at(mu) / P
    on_arrival = wait if problem.wait != "none" else 0.0
    on_start = wait if problem.wait == "serial" else 0.0
    return [
        (local, 0.0, 0.0),
        (up, 0.0, 0.0),
        (busy, latency + on_arrival, on_start),
        *[(busy, 0.0, 0.0)] * (P - 1),
        (back, latency, 0.0),
    ]


def read(problem: PromptChunkingProblem, program: Any, value: Value) -> PromptChunkingPlan:
    """Return the plan that corresponds to a solution of the program."""
    ends = sorted(j for i, j in program.chunks if value(program.takes[i, j]) > 0.5)
    step = problem.grid_tokens or 1
    return plan_of(np.diff([0, *(min(problem.prompt_tokens, step * j) for j in ends)]))


FORMULATION = Formulation(formulate, read)
