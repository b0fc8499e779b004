"""A readable reference for prompt chunking: a mixed-integer linear program, stated in Pyomo, for
any solver.

A plan is a path over the places where a chunk may end. Each place has the times at which the chunk
that ends there has left every resource. A chunk that is taken lets the times at its end follow
those at its begin, as the event model of `specopt.models.prompt_chunking.problem` says. Nothing is
assumed about good plans.
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
"""The time of one chunk in the program's own unit: the tolerances of HiGHS are absolute."""


@dataclass(frozen=True)
class MilpChunking(ByProgram, PromptChunkingMethod):
    """An integer program for a path over the possible chunk ends, with the times at each one."""

    name = "milp"
    source = "own; paper 4, Sec. 3.3, as a path with times, Pyomo and HiGHS"
    complexity = "exponential; M^2 / 2 binaries and M^2 P rows over M places where a chunk may end"
    max_size = 24

    def bytes_needed(self, problem: PromptChunkingProblem) -> dict[str, float]:
        """Return the bytes of the program, too."""
        rows = 0.5 * places(problem) ** 2 * problem.pipeline_length
        return super().bytes_needed(problem) | {
            "pairs of places times pipeline_length": BYTES_PER_ROW * rows
        }

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """State the program, solve it, and read its path."""
        offer_first_plan(problem, budget)
        return run_program(problem, FORMULATION, budget, 1e-9, solver=self.solver)


def formulate(problem: PromptChunkingProblem) -> Any:
    """Return the program as a Pyomo model; times are in parts of the time of one chunk.

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
    program.stages = pyo.RangeSet(1, problem.pipeline_length)
    program.chunks = pyo.Set(initialize=[(i, j) for j in range(1, M + 1) for i in range(j)])

    # Variables
    program.takes = pyo.Var(
        program.chunks, domain=pyo.Binary
    )  # a chunk of the tokens between two places
    program.local = pyo.Var(
        program.places, domain=pyo.NonNegativeReals
    )  # the device has computed it
    program.up = pyo.Var(program.places, domain=pyo.NonNegativeReals)  # it is uploaded
    program.left = pyo.Var(
        program.stages, program.places, domain=pyo.NonNegativeReals
    )  # it has left a stage
    program.down = pyo.Var(
        program.places, domain=pyo.NonNegativeReals
    )  # its hidden states are back

    # The time to the first token
    program.first_token = pyo.Objective(expr=program.down[M] + problem.head_seconds / unit)
    program.known = pyo.Constraint(expr=program.first_token.expr <= UNITS * (1 + 1e-9))

    # The chunks are a path from the first token to the last.
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
    _pass(program, problem, {(i, j): ends[j] - ends[i] for i, j in program.chunks})
    return program


def _pass(program: Any, problem: PromptChunkingProblem, size: dict[tuple[int, int], int]) -> None:
    """Let the chunks pass the resources in order, each as long as its tokens take there."""
    import pyomo.environ as pyo

    unit, P, M = program.unit, problem.pipeline_length, program.places.last()

    # Seconds of a chunk on each resource
    g, mu = problem.cloud_delay, problem.background_tokens
    upload_token = problem.bytes_per_token / problem.uplink_bytes_per_second
    download_token = problem.bytes_per_token / problem.downlink_bytes_per_second
    local = {
        c: problem.local_overhead_seconds + problem.local_seconds_per_token * x
        for c, x in size.items()
    }
    up = {c: problem.message_overhead_seconds + upload_token * x for c, x in size.items()}
    busy = {c: g.at(mu + x) / P for c, x in size.items()}
    back = {
        c: download_token * (x if problem.download == "all" else 1.0 if c[1] == M else 0.0)
        for c, x in size.items()
    }
    latency, wait = problem.link_latency_seconds / unit, g.at(mu) / P / unit
    on_arrival = wait if problem.wait != "none" else 0.0
    on_start = wait if problem.wait == "serial" else 0.0

    def of(seconds: dict[tuple[int, int], float], j: int) -> Any:
        """Return the seconds of the chunk that ends at a place; 0 if none does."""
        return sum(seconds[i, j] / unit * program.takes[i, j] for i in range(j))

    def after(done: Any, seconds: dict[tuple[int, int], float], more: float = 0.0) -> Any:
        """The chunk i..j follows the one that ends at i; nothing that matters lasts longer than one
        chunk.
        """

        def rule(p: Any, i: int, j: int) -> Any:
            if i == 0:
                return pyo.Constraint.Skip
            least = seconds[i, j] / unit + more
            return done[j] >= done[i] + least - (UNITS + least) * (1 - p.takes[i, j])

        return pyo.Constraint(program.chunks, rule=rule)

    def each(rule: Any) -> Any:
        return pyo.Constraint(pyo.RangeSet(1, M), rule=rule)

    # The device computes, then uploads, one chunk after the other.
    program.computes = each(lambda p, j: p.local[j] >= of(local, j))
    program.computes_in_turn = after(program.local, local)
    program.uploads = each(lambda p, j: p.up[j] >= p.local[j] + of(up, j))
    program.uploads_in_turn = after(program.up, up)
    # A chunk has arrived, waits, and passes the stages of the cloud, each one chunk after the
    # other.
    first = {j: program.left[1, j] for j in program.places}
    program.enters = each(lambda p, j: first[j] >= p.up[j] + latency + on_arrival + of(busy, j))
    program.enters_in_turn = after(first, busy, on_start)
    program.passes = pyo.Constraint(
        program.stages,
        pyo.RangeSet(1, M),
        rule=lambda p, q, j: (
            p.left[q, j] >= p.left[q - 1, j] + of(busy, j) if q > 1 else pyo.Constraint.Skip
        ),
    )
    for q in range(2, P + 1):
        here = {j: program.left[q, j] for j in program.places}
        program.add_component(f"passes_in_turn_{q}", after(here, busy))
    # Its hidden states come back.
    program.returns = each(lambda p, j: p.down[j] >= p.left[P, j] + latency + of(back, j))
    program.returns_in_turn = after(program.down, back)


def read(problem: PromptChunkingProblem, program: Any, value: Value) -> PromptChunkingPlan:
    """Return the plan of a program's solution."""
    ends = sorted(j for i, j in program.chunks if value(program.takes[i, j]) > 0.5)
    step = problem.grid_tokens or 1
    return plan_of(np.diff([0, *(min(problem.prompt_tokens, step * j) for j in ends)]))


FORMULATION = Formulation(formulate, read)
