"""A readable reference formulation of problem (24) of paper 1, as a mixed-integer linear program in
Pyomo that HiGHS solves.

There is one program for each mechanism and speculation length l. The program makes no assumptions
about optimal plans: batches need not be contiguous in sorted input length, and tasks are assigned
to pipeline positions freely. All decoding steps are in the model, so the program is practical only
for small problems. It serves as an oracle for the other methods and as a starting point for other
formulations. The method `milp` solves a relaxation in which all steps of a range share their
variables. It splits a range if the critical batches change within the range.

The products in T(b, F) = c1 b F + c2 and the maxima of a batch (Eq. 8, 17) become linear because
the batch at each position has a *shape* from a list. A shape consists of a batch size, a padded
input length and a longest output length. The stage times of every shape at every step are data, so
the program represents any runtime and cost model exactly. A task may join any batch whose shape is
at least as long as the task. Stage times and memory grow with the shape, so optimal solutions do
not pad more than necessary.
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
"""Inference time T_inf of the incumbent, after scaling. Each program's unit of time is chosen to
yield this value, because the tolerances of HiGHS are absolute.
"""


@dataclass(frozen=True)
class Milp(ByProgram, ServingLatencyMethod):
    """A reference method, written for readability. It solves mixed-integer programs that assign
    tasks to pipeline positions.

    Each position has a batch shape, and completion times follow the recursion of Eq. 20. The method
    is practical for up to 4 tasks with all speculation lengths, and for up to 6 tasks with a single
    length. Such problems take a few seconds. A request to stop takes effect only when the current
    program has been solved, whereas Ctrl-C and the time limit also interrupt a program.

    Parameters
    ----------
    length
        Speculation length of the plan. If it is None, all lengths are tried. The bound holds for
        plans of every length, because a simple bound covers the lengths that were not solved. The
        entry `bound_at_length` of the stats is a bound for plans with this length only.
    """

    length: PositiveInt | None = None

    name = "milp"
    source = "specopt; problem (24) of paper 1 with Eq. 8-10 and 17-22 linearised, Pyomo and HiGHS"
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
        """Solve a program for every mechanism and speculation length, starting with those whose
        simple initial plans have the lowest latency.
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
        """Return the largest number of decoding steps in any plan that the method considers."""
        if ONE_RATE.clash(self, problem):
            return 0  # refused for another reason
        options = (prepare(problem, mechanism) for mechanism in problem.mechanisms)
        return max(Case(prepared, self._lengths(prepared)[0]).steps for prepared in options)

    def _lengths(self, prepared: Prepared) -> Sequence[int]:
        if self.length is None or prepared.mechanism == "autoregressive":
            return prepared.lengths
        return range(self.length, self.length + 1)


def simple_batches(prepared: Prepared) -> list[list[list[int]]]:
    """Return batches for simple initial plans. In the first plan, batches are as large as memory
    allows. Each of the other plans has batches of one equal size that fits in memory.
    """
    quick = quick_batches(prepared)
    assert quick is not None, "every task fits alone"
    equal = [slices_of(prepared.tasks, size) for size in range(1, prepared.tasks + 1)]
    return [quick, *(batches for batches in equal if feasible(prepared, batches))]


class Shape(NamedTuple):
    """Size b of a batch, and the input and output lengths to which its tasks are padded (Eq. 8,
    11).

    The size and the lengths determine the batch's stage times and memory use.
    """

    size: int
    padded_input: float
    longest_output: float


@dataclass(frozen=True, eq=False)
class Case:
    """The data for one program, which covers one mechanism and one speculation length.

    Parameters
    ----------
    prepared
        Problem under the mechanism, with tasks sorted by input length.
    length
        Speculation length l.
    """

    prepared: Prepared
    length: int

    @property
    def steps(self) -> int:
        """Number N of decoding steps until the last batch finishes (Eq. 8)."""
        return int(self.prepared.steps_of(self.prepared.outputs, self.length).max())

    @cached_property
    def shapes(self) -> list[Shape]:
        """Batch shapes that are possible and fit in memory (Eq. 9-10)."""
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
        """Draft times T^d and verify times T^v, with shape (2, S, N) for S batch shapes and N
        decoding steps.

        Entries are 0 after the batch has finished. Draft times are also 0 if there is no draft
        model.
        """
        prepared = self.prepared
        sizes, inputs, outputs = np.array(self.shapes).T
        rows = sizes.astype(np.int64) * prepared.tasks + np.searchsorted(prepared.inputs, inputs)
        active = np.arange(self.steps) < prepared.steps_of(outputs, self.length)[:, None]
        times = tabled(prepared, self.length, self.steps)[:, rows, : self.steps]
        return np.asarray(times * active)

    @property
    def program_size(self) -> tuple[int, int, int]:
        """Numbers of rows, columns and nonzero coefficients of the program with separate variables
        for every step.
        """
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
        """First step of each initial range, counted from 0. The prefill is one range. The other
        ranges end at the steps at which batches of some shape finish.
        """
        outputs = np.array([shape.longest_output for shape in self.shapes])
        done = self.prepared.steps_of(outputs, self.length)
        return np.unique([0, min(1, self.steps - 1), *done[done < self.steps]])

    def halved(self, starts: Ints, plan: ServingLatencyPlan) -> Ints:
        """Refine the ranges of steps that are too coarse for a plan, and return the first step of
        each new range.

        A range is halved if the plan takes longer in it than the summed stage times suggest.
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
        """Return whether a task may join a batch with the given shape. Tasks may be padded but not
        truncated.
        """
        prepared = self.prepared
        return bool(
            prepared.inputs[task] <= shape.padded_input
            and prepared.outputs[task] <= shape.longest_output
        )

    def simple_bound(self) -> float:
        """Return a simple lower bound, in seconds, on the total latency of a plan.

        The time of each batch is divided equally among its tasks. The bound adds up, over all
        tasks, the smallest share that the task can have in any batch that it may join. Each stage
        is busy for at least this time.
        """
        draft, verify = self.stages.sum(axis=2)
        loads = [draft, verify] if self.prepared.overlap else [draft + verify]
        sizes = np.array([shape.size for shape in self.shapes])
        tasks = range(self.prepared.tasks)
        able = np.array([[self.takes(shape, task) for shape in self.shapes] for task in tasks])
        inference = max(np.where(able, load / sizes, math.inf).min(axis=1).sum() for load in loads)
        return float(inference) + self.prepared.communication_seconds


def formulate(case: Case, known: float, starts: Ints | None = None) -> Any:
    """Formulate the program for one mechanism and one speculation length as a Pyomo model.

    Parameters
    ----------
    case
        Data for the program.
    known
        Upper limit on the total latency of a plan, in seconds. Plans with a higher latency are
        infeasible in the program.
    starts
        First step of each range, counted from 0. All steps of a range share their variables, which
        makes the program a relaxation. If `starts` is None, each step has separate variables.
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
    program.positions = pyo.RangeSet(1, case.prepared.tasks)  # of the pipeline; some may stay empty
    program.steps = pyo.RangeSet(1, len(starts))
    program.shapes = pyo.RangeSet(0, len(shapes) - 1)

    # Variables
    program.joins = pyo.Var(
        program.tasks, program.positions, domain=pyo.Binary
    )  # the task runs at the position
    program.has = pyo.Var(
        program.positions, program.shapes, domain=pyo.Binary
    )  # the batch there has this shape
    program.drafted = pyo.Var(
        program.positions, program.steps, domain=pyo.NonNegativeReals
    )  # Y[m,n,0]
    program.verified = pyo.Var(
        program.positions, program.steps, domain=pyo.NonNegativeReals
    )  # Y[m,n,1]

    # Objective: the makespan of every decoding step, summed (Eq. 21-22)
    last = case.prepared.tasks
    program.inference = pyo.Objective(expr=sum(program.verified[last, n] for n in program.steps))

    # Only plans at least as good as the best known plan matter.
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
    # The batch is padded to its longest input, and decodes to its longest output (Eq. 8, 11). Since
    # only fitting shapes exist, this is also the memory constraint (24b).
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
    """Add the constraints on the order in which stages run within every step (Eq. 20)."""
    import pyomo.environ as pyo

    def seconds(stage: Floats, m: int, n: int) -> Any:
        """Return an expression for the stage time of position m at step n (Eq. 13-14, 18-19).

        The position's shape determines the time. It is 0 if the position is empty or its batch has
        finished.
        """
        return sum(
            float(stage[s, n - 1]) * program.has[m, s]
            for s in program.shapes
            if stage[s, n - 1] > 0
        )

    def before(done: Any, m: int, n: int) -> Any:
        """Return the time at which a stage becomes free for position m, or 0 for the first
        position.
        """
        return done[m - 1, n] if m > 1 else 0.0

    def always(rule: Callable[[Any, int, int], Any]) -> Any:
        return pyo.Constraint(program.positions, program.steps, rule=rule)

    if overlap:
        # The draft stage processes one batch at a time.
        program.draft_stage = always(
            lambda p, m, n: p.drafted[m, n] >= before(p.drafted, m, n) + seconds(draft, m, n)
        )
        # Verification waits for the draft tokens of its own batch ...
        program.after_draft = always(
            lambda p, m, n: p.verified[m, n] >= p.drafted[m, n] + seconds(verify, m, n)
        )
        # ... and for the previous batch.
        program.after_verify = always(
            lambda p, m, n: p.verified[m, n] >= before(p.verified, m, n) + seconds(verify, m, n)
        )
    else:
        # Without overlap, both stages of a batch wait for the previous batch; autoregressive
        # serving drafts nothing.
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
    """Solve the program for one mechanism and speculation length, and return the reason why HiGHS
    stopped.

    The best plan is recorded in the budget if it improves on the incumbent, and the bound in
    `bounds` is raised. Steps are initially combined into ranges. The program assumes that the
    critical batches are the same at all steps of a range, which may underestimate the duration of a
    plan. If so, the range is halved, and the program is solved again.

    The dictionaries `bounds` and `stats` are modified in place.
    """
    starts = case.first_ranges
    while True:
        assert budget.objective is not None
        program = formulate(case, budget.objective, starts)
        budget.check()
        # all constraints are times that follow each other; shapes cover memory
        solved = solve_program(program, budget, 1e-9, solver=solver)
        stats["programs"] += 1
        stats["nodes"] += solved.nodes
        stats["simplex_iterations"] += solved.count("simplex_iteration_count")
        if solved.termination is Termination.INFEASIBLE:
            # no plan of this case is better than the known plan
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
    """Formulate the program for one mechanism and one speculation length as a Pyomo model.

    Parameters
    ----------
    problem
        Problem to formulate.
    length
        Speculation length l. If it is None, the length at which simple batches have the lowest
        latency is used.
    mechanism
        Mechanism of the plan. If it is None, the first mechanism that the problem allows is used.

    Raises
    ------
    Unsupported
        If `milp` does not support problems of this form, or if the program is too large.
    InvalidInput
        If the problem does not allow the length or the mechanism.
    Infeasible
        If some task does not fit in any batch.
    """
    clashes = (one.clash(None, problem) for one in (*Milp.serves, *Milp.forms))
    reason = next(filter(None, clashes), None)
    if reason:
        raise Unsupported(f"formulation: a problem with {reason} is not supported")
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
    """Convert a solution of the program to a plan for the problem."""
    case: Case = program.case
    batches = [
        [k for k in program.tasks if value(program.joins[k, m]) > 0.5] for m in program.positions
    ]
    return case.prepared.plan([batch for batch in batches if batch], case.length)


FORMULATION = Formulation(state, read)
