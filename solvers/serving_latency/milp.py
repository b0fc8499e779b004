"""A readable reference for problem (24) of paper 1: a mixed-integer linear program, stated in Pyomo
and solved by HiGHS.

One program per mechanism and speculation length l. Nothing is assumed about optimal plans, neither
that batches are contiguous in sorted input length nor their order: tasks go to pipeline positions
freely. All decoding steps are in the model, so it is for small problems: an oracle for the other
methods, and a formulation to start others from. `milp` solves it with steps in ranges, which share
their variables, and divides these where the critical batches change.

The products in T(b, F) = c1 b F + c2 and the maxima of a batch (Eq. 8, 17) become linear: each
position takes a *shape* from a list. A shape is the size, padded input length and longest output
length of its batch. The stage times of every shape at every step are data, so any runtime and cost
model enters exactly. A task may join a batch whose shape is at least as long as the task itself;
stage times and memory grow with the shape, so no minimum pads more than it has to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import Floats, Ints, PositiveInt
from specopt.models.result import Termination
from specopt.models.serving_data import Mechanism
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.formulation import Formulation, Value, check_size
from specopt.solvers.method import Condition, Outcome, at_most
from specopt.solvers.pyomo_program import HIGHS, ByProgram, solve_program
from specopt.solvers.serving_latency.method import ServingLatencyMethod
from specopt.solvers.serving_latency.prepare import Prepared, feasible, prepare, slices_of
from specopt.solvers.serving_latency.stages import tabled
from specopt.solvers.serving_method import ONE_RATE, able, quick_batches

MAX_STEPS = 2_000

UNITS = 100.0
"""The best known T_inf in a program's own unit of time: the tolerances of HiGHS are absolute."""


@dataclass(frozen=True)
class Milp(ByProgram, ServingLatencyMethod):
    """The readable reference, with assignment to positions, batch shapes and the recursion of Eq.
    20.

    Practical are up to 4 tasks with all speculation lengths and 6 with a given one: some seconds.
    The caller's wish to stop is noticed between programs, Ctrl-C and the time limit within them.

    Parameters
    ----------
    length
        Plan with this speculation length alone; None enumerates all. The bound holds for every plan
        all the same: the lengths that were not solved enter with a simple bound. `bound_at_length`
        of the stats holds for this one.
    """

    length: PositiveInt | None = None

    name = "milp"
    source = "own; problem (24) of paper 1 with Eq. 8-10 and 17-22 linearised, Pyomo and HiGHS"
    guarantee = "optimal, to 1e-6; for a given length a certified gap"
    complexity = "exponential; K^3 / 2 binaries (known outputs: up to K^4 / 4) and 3 K N rows per l"
    max_size = 6
    takes = (
        Condition(
            "at most 4 tasks unless its option length is set",
            lambda method, problem: (
                f"{problem.tasks} tasks" if method.length is None and problem.tasks > 4 else None
            ),
        ),
        Condition(
            "a max_speculation_length at least as large as its option length",
            lambda method, problem: method._too_short(problem),
        ),
        at_most(MAX_STEPS, "decoding steps", lambda method, problem: method._steps(problem)),
    )

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Solve a program for every mechanism and speculation length, those with the best simple
        plan first.
        """
        start: dict[Case, float] = {}
        bounds: dict[Case, float] = {}
        for prepared in able(problem, Prepared):
            chosen = self._lengths(prepared)
            for length in sorted({*prepared.lengths, *chosen}):
                case = Case(prepared, length)
                if length in chosen:
                    plans = [prepared.plan(one, length) for one in simple_batches(prepared)]
                    start[case] = min(map(budget.offer, plans))
                    budget.check()
                bounds[case] = case.simple_bound()
                budget.check()
        budget.improve_bound(min(bounds.values()))
        stats = {"programs": 0, "nodes": 0, "simplex_iterations": 0}
        ended = Termination.CONVERGED
        for case in sorted(start, key=start.__getitem__):
            assert budget.objective is not None
            if bounds[case] < budget.objective:
                ended = solve_case(case, budget, bounds, stats, self.solver)
                budget.improve_bound(min(bounds.values()))
                if ended is not Termination.CONVERGED:
                    break
                budget.check()
        at_length: dict[str, float] = {}
        if self.length is not None:
            at_length["bound_at_length"] = min(bounds[case] for case in start)
        return Outcome(
            plan=budget.incumbent,
            bound=min(bounds.values()),
            termination=ended,
            stats=stats | at_length,
        )

    def _too_short(self, problem: ServingLatencyProblem) -> str | None:
        longest = problem.max_speculation_length
        if (
            self.length is None
            or longest is None
            or self.length <= longest
            or problem.mechanism == "autoregressive"
        ):
            return None
        return f"a max_speculation_length of {longest}, below {self.length}"

    def _steps(self, problem: ServingLatencyProblem) -> int:
        """Return the most decoding steps of any plan that is looked at."""
        if ONE_RATE.clash(self, problem):
            return 0  # refused for another reason
        options = (prepare(problem, mechanism) for mechanism in problem.mechanisms)
        return max(Case(prepared, self._lengths(prepared)[0]).steps for prepared in options)

    def _lengths(self, prepared: Prepared) -> Sequence[int]:
        if self.length is None or prepared.mechanism == "autoregressive":
            return prepared.lengths
        return range(self.length, self.length + 1)


def simple_batches(prepared: Prepared) -> list[list[list[int]]]:
    """Return batches as large as memory allows, and those of every equal size that fits: plans to
    start from.
    """
    quick = quick_batches(prepared)
    assert quick is not None, "every task fits alone"
    equal = [slices_of(prepared.tasks, size) for size in range(1, prepared.tasks + 1)]
    return [quick, *(batches for batches in equal if feasible(prepared, batches))]


class Shape(NamedTuple):
    """The size b of a batch, and the lengths that it is padded to (Eq. 8, 11): its stage times and
    its memory depend on nothing else.
    """

    size: int
    padded_input: float
    longest_output: float


@dataclass(frozen=True, eq=False)
class Case:
    """The data of one program: a problem under one mechanism at one speculation length.

    Parameters
    ----------
    prepared
        The problem under the mechanism, its tasks sorted by input length.
    length
        The speculation length l.
    """

    prepared: Prepared
    length: int

    @property
    def steps(self) -> int:
        """N, the decoding steps until the last batch is done (Eq. 8)."""
        return int(self.prepared.steps_of(self.prepared.outputs, self.length).max())

    @cached_property
    def shapes(self) -> list[Shape]:
        """Every shape that some batch has and that fits the memory (Eq. 9-10)."""
        inputs, outputs = self.prepared.inputs, self.prepared.outputs
        found = []
        for padded, longest in product(np.unique(inputs), np.unique(outputs)):
            able = (inputs <= padded) & (outputs <= longest)
            if not (able & (inputs == padded)).any() or not (able & (outputs == longest)).any():
                continue
            least = 1 if (able & (inputs == padded) & (outputs == longest)).any() else 2
            for size in range(least, int(able.sum()) + 1):
                if self.prepared.fits(size, padded, longest):
                    found.append(Shape(size, float(padded), float(longest)))
        return found

    @cached_property
    def stages(self) -> Floats:
        """T^d and T^v of every shape (row) at every decoding step (column), shape (2, S, N); 0 once
        its batch is done, or without drafting.
        """
        prepared = self.prepared
        sizes, inputs, outputs = np.array(self.shapes).T
        rows = sizes.astype(np.int64) * prepared.tasks + np.searchsorted(prepared.inputs, inputs)
        active = np.arange(self.steps) < prepared.steps_of(outputs, self.length)[:, None]
        times = tabled(prepared, self.length, self.steps)[:, rows, : self.steps]
        return np.asarray(times * active)

    @property
    def program_size(self) -> tuple[int, int, int]:
        """Rows, columns and entries of the program with all steps."""
        tasks, shapes = self.prepared.tasks, len(self.shapes)
        stages = (3 if self.prepared.mechanism == "pipelined" else 1) * tasks * self.steps
        columns = tasks * (tasks + shapes + 2 * self.steps)
        return (
            4 * tasks + tasks**2 + stages,
            columns,
            (stages + tasks**2 + 4 * tasks) * (shapes + 2),
        )

    @property
    def first_ranges(self) -> Ints:
        """The prefill, and the steps between those at which some shape is done, as first steps from
        0.
        """
        outputs = np.array([shape.longest_output for shape in self.shapes])
        done = self.prepared.steps_of(outputs, self.length)
        return np.unique([0, min(1, self.steps - 1), *done[done < self.steps]])

    def halved(self, starts: Ints, plan: ServingLatencyPlan) -> Ints:
        """Return the first steps of ranges, those in two in which a plan takes longer than their
        sums do.
        """
        prepared = self.prepared
        rank = prepared.order.argsort()
        rows = []
        for batch in plan.batches:
            members = rank[list(batch)]
            longest = float(prepared.inputs[members].max()), float(prepared.outputs[members].max())
            rows.append(self.shapes.index(Shape(len(members), *longest)))

        def ends(stages: Floats) -> Floats:
            runs = stages[:, rows].swapaxes(0, 1)
            return np.asarray([*prepared.completed(runs, np.maximum)][-1])

        longer = np.add.reduceat(ends(self.stages), starts)
        summed = ends(np.add.reduceat(self.stages, starts, axis=2))
        width = np.diff(starts, append=self.steps)
        loose = (longer > summed * (1 + 1e-12)) & (width > 1)
        return np.sort(np.append(starts, (starts + width // 2)[loose]))

    def takes(self, shape: Shape, task: int) -> bool:
        """Return whether a task may join a batch of a shape: it is padded, never cut."""
        prepared = self.prepared
        return bool(
            prepared.inputs[task] <= shape.padded_input
            and prepared.outputs[task] <= shape.longest_output
        )

    def simple_bound(self) -> float:
        """Return a bound on the objective: each task's share of the cheapest batch that it may
        join, summed.

        Each stage alone is busy for the sum of its batches' times, and each batch divides its time
        among its tasks.
        """
        draft, verify = self.stages.sum(axis=2)
        loads = [draft, verify] if self.prepared.overlap else [draft + verify]
        sizes = np.array([shape.size for shape in self.shapes])
        tasks = range(self.prepared.tasks)
        able = np.array([[self.takes(shape, task) for shape in self.shapes] for task in tasks])
        inference = max(np.where(able, load / sizes, math.inf).min(axis=1).sum() for load in loads)
        return float(inference) + self.prepared.communication_seconds


def formulate(case: Case, known: float, starts: Ints | None = None) -> Any:
    """Return the program of one case as a Pyomo model.

    Parameters
    ----------
    case
        The case to formulate.
    known
        Total latency above which plans are of no interest.
    starts
        First steps, from 0, of ranges whose steps share their variables, which is a relaxation;
        None means that each step has its own.
    """
    import pyomo.environ as pyo

    offset = case.prepared.communication_seconds
    known_seconds = max(0.0, known - offset) * (1 + 1e-9)
    unit_seconds = known_seconds / UNITS or 1.0
    starts = np.arange(case.steps) if starts is None else starts
    draft, verify = np.add.reduceat(case.stages, starts, axis=2) / unit_seconds
    shapes = case.shapes
    program = pyo.ConcreteModel()
    program.unit, program.offset, program.case = unit_seconds, offset, case

    # Sets
    program.tasks = pyo.RangeSet(0, case.prepared.tasks - 1)
    program.positions = pyo.RangeSet(
        1, case.prepared.tasks
    )  # of the pipeline; as many as tasks, some stay empty
    program.steps = pyo.RangeSet(1, len(starts))
    program.shapes = pyo.RangeSet(0, len(shapes) - 1)

    # Variables
    program.joins = pyo.Var(
        program.tasks, program.positions, domain=pyo.Binary
    )  # the task runs at the position
    program.has = pyo.Var(
        program.positions, program.shapes, domain=pyo.Binary
    )  # the batch there has the shape
    program.drafted = pyo.Var(
        program.positions, program.steps, domain=pyo.NonNegativeReals
    )  # Y[m,n,0]
    program.verified = pyo.Var(
        program.positions, program.steps, domain=pyo.NonNegativeReals
    )  # Y[m,n,1]

    # Objective: the makespan of every decoding step, summed (Eq. 21-22)
    last = case.prepared.tasks
    program.inference = pyo.Objective(expr=sum(program.verified[last, n] for n in program.steps))

    # Only plans as good as the best one known matter.
    program.known = pyo.Constraint(expr=program.inference.expr <= known_seconds / unit_seconds)
    # (24c-e) Every task runs at exactly one position.
    program.once = pyo.Constraint(
        program.tasks, rule=lambda p, k: sum(p.joins[k, m] for m in p.positions) == 1
    )
    # A batch has one shape; an empty position has none.
    program.one_shape = pyo.Constraint(
        program.positions, rule=lambda p, m: sum(p.has[m, s] for s in p.shapes) <= 1
    )
    # Empty positions come last: they are interchangeable.
    program.empty_last = pyo.Constraint(
        program.positions,
        rule=lambda p, m: (
            sum(p.has[m, s] for s in p.shapes) <= sum(p.has[m - 1, s] for s in p.shapes)
            if m > 1
            else pyo.Constraint.Skip
        ),
    )
    # The size of the shape is the number of tasks in the batch.
    program.size = pyo.Constraint(
        program.positions,
        rule=lambda p, m: (
            sum(p.joins[k, m] for k in p.tasks)
            == sum(shapes[s].size * p.has[m, s] for s in p.shapes)
        ),
    )
    # The batch is padded to its longest input, and decodes to its longest output (Eq. 8, 11); with
    # the shapes that exist this is the memory constraint, too (24b).
    program.padded = pyo.Constraint(
        program.tasks,
        program.positions,
        rule=lambda p, k, m: (
            p.joins[k, m] <= sum(p.has[m, s] for s in p.shapes if case.takes(shapes[s], k))
        ),
    )
    _follow(program, draft, verify, case.prepared.overlap)
    return program


def _follow(program: Any, draft: Floats, verify: Floats, overlap: bool) -> None:
    """Let the stages of every step follow each other (Eq. 20)."""
    import pyomo.environ as pyo

    def seconds(stage: Floats, m: int, n: int) -> Any:
        """The stage time of position m at step n: that of its shape, 0 if empty or done (Eq. 13-14,
        18-19).
        """
        return sum(
            float(stage[s, n - 1]) * program.has[m, s]
            for s in program.shapes
            if stage[s, n - 1] > 0
        )

    def before(done: Any, m: int, n: int) -> Any:
        """The time at which a stage is free for position m: 0 for the first."""
        return done[m - 1, n] if m > 1 else 0.0

    def always(rule: Callable[[Any, int, int], Any]) -> Any:
        return pyo.Constraint(program.positions, program.steps, rule=rule)

    if overlap:
        # The draft stage takes one batch after the other.
        program.draft_stage = always(
            lambda p, m, n: p.drafted[m, n] >= before(p.drafted, m, n) + seconds(draft, m, n)
        )
        # Verification waits for the guesses of its own batch ...
        program.after_draft = always(
            lambda p, m, n: p.verified[m, n] >= p.drafted[m, n] + seconds(verify, m, n)
        )
        # ... and for the batch before.
        program.after_verify = always(
            lambda p, m, n: p.verified[m, n] >= before(p.verified, m, n) + seconds(verify, m, n)
        )
    else:
        # Without overlap both stages of a batch wait for the batch before; autoregressive serving
        # drafts nothing.
        program.one_after_the_other = always(
            lambda p, m, n: (
                p.verified[m, n] >= before(p.verified, m, n) + seconds(draft + verify, m, n)
            )
        )


def solve_case(
    case: Case,
    budget: Budget,
    bounds: dict[Case, float],
    stats: dict[str, int],
    solver: str = HIGHS,
) -> Termination:
    """Offer the best plan of one case if it beats the incumbent, raise its bound; return why HiGHS
    stopped.

    Steps are combined in ranges at first: a range takes at least as long as its critical batches
    take in all. If the plan found takes longer, because these change from step to step, the range
    is halved, until it does not.

    Modified in place: bounds, stats.
    """
    starts = case.first_ranges
    while True:
        assert budget.objective is not None
        program = formulate(case, budget.objective, starts)
        budget.check()
        # its rows are times that follow each other; memory is in the shapes
        solved = solve_program(program, budget, 1e-9, solver=solver)
        stats["programs"] += 1
        stats["nodes"] += solved.nodes
        stats["simplex_iterations"] += solved.count("simplex_iteration_count")
        if solved.termination is Termination.INFEASIBLE:
            # no plan of this case is better than the known one
            bounds[case] = max(bounds[case], budget.objective)
            return Termination.CONVERGED
        if solved.bound is not None:
            bounds[case] = max(bounds[case], solved.bound * program.unit + program.offset)
        if not solved.has_solution:
            return solved.termination
        plan = read(case.prepared.problem, program, solved.values().__getitem__)
        budget.offer(plan)
        finer = case.halved(starts, plan)
        if solved.termination is not Termination.CONVERGED or len(finer) == len(starts):
            return solved.termination
        starts = finer


def state(
    problem: ServingLatencyProblem, length: int | None = None, mechanism: Mechanism | None = None
) -> Any:
    """Return the program of one mechanism and one speculation length.

    Parameters
    ----------
    problem
        The problem to formulate.
    length
        The speculation length l; None means the one at which simple batches are best.
    mechanism
        The mechanism, where the problem leaves it open; None means the first one allowed.

    Raises
    ------
    Unsupported
        If the problem is none of those that `milp` takes, but for its size, or its program is too
        large.
    InvalidInput
        If there is no such length or mechanism.
    Infeasible
        If a task fits no batch.
    """
    clashes = (one.clash(None, problem) for one in (*Milp.serves, *Milp.forms))
    reason = next(filter(None, clashes), None)
    if reason:
        raise Unsupported(f"formulation: the problem has {reason}")
    options = [one for one in able(problem, Prepared) if mechanism in (None, one.mechanism)]
    if not options:
        raise InvalidInput(
            f"mechanism: expected one of {', '.join(problem.mechanisms)}, got {mechanism!r}"
        )
    prepared = options[0]
    lengths = prepared.lengths if length is None else [length]
    if lengths[0] not in prepared.lengths:
        raise InvalidInput(
            f"length: expected {prepared.lengths[0]} to {prepared.lengths[-1]}, got {length!r}"
        )

    def latency(batches: list[list[int]], at: int) -> float:
        return problem.evaluate(prepared.plan(batches, at)).objective

    simple = simple_batches(prepared)
    known, best = min((min(latency(batches, at) for batches in simple), at) for at in lengths)
    case = Case(prepared, best)
    check_size(*case.program_size)
    return formulate(case, known)


def read(problem: ServingLatencyProblem, program: Any, value: Value) -> ServingLatencyPlan:
    """Return the plan of a program's solution."""
    case: Case = program.case
    batches = [
        [k for k in program.tasks if value(program.joins[k, m]) > 0.5] for m in program.positions
    ]
    return case.prepared.plan([batch for batch in batches if batch], case.length)


FORMULATION = Formulation(state, read)
