"""Problem (24) of paper 1 as a mixed-integer linear program, written to be read; Pyomo states it, HiGHS solves it.

One program per mechanism and speculation length l. Nothing is assumed about optimal plans, neither that batches are
contiguous in sorted input length nor their order: tasks go to pipeline positions freely. All decoding steps are in
the model, so it is for small problems: an oracle for the other methods, and a formulation to start others from.

The products in T(b, F) = c1 b F + c2 and the maxima of a batch (Eq. 8, 17) become linear by choosing each position's
*shape* from a list: size, padded input length and longest output length of its batch. The stage times of every shape
at every step are data, so any runtime and cost model enters exactly. A task may join a batch whose shape is at least
as long as the task itself; stage times and memory grow with the shape, so no minimum pads more than it has to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from specopt.models.decoder import Decoder
from specopt.models.errors import OutOfTime, Stopped
from specopt.models.fields import Floats, PositiveInt
from specopt.models.serving_latency import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.method import ServingLatencyMethod
from specopt.solvers.serving_latency.prepare import Prepared, offer_quick_plan, prepare

UNITS = 100.0
"""T_inf of the first plan in the program's unit of time: the tolerances of HiGHS are absolute."""


@dataclass(frozen=True)
class Milp(ServingLatencyMethod):
    """The readable reference: assignment to positions, shapes of batches, the recursion of Eq. 20.

    Parameters
    ----------
    length
        Solve for this speculation length alone; None enumerates all. The bound still holds for every plan: the
        lengths that were not solved enter with a simple bound.
    """

    length: PositiveInt | None = None

    name: ClassVar[str] = "milp"
    exact: ClassVar[bool] = True
    source: ClassVar[str] = "own; problem (24) of paper 1 with Eq. 8-10 and 17-22 linearised, Pyomo and HiGHS"
    guarantee: ClassVar[str] = "optimal within the solver's tolerance"
    complexity: ClassVar[str] = "exponential; per l about K^3 (known outputs: K^4) binaries and 2 K N rows"
    max_size: ClassVar[int] = 5
    max_steps: ClassVar[int] = 64
    tolerance: ClassVar[float] = 1e-6

    def refusal(self, problem: ServingLatencyProblem) -> str | None:
        """Return why this method cannot take the problem: too many tasks or decoding steps, or no such l."""
        reason = super().refusal(problem)
        if reason is not None:
            return reason
        options = [prepare(problem, mechanism) for mechanism in problem.mechanisms]
        for prepared in options:
            if self.length is not None and prepared.lengths[0] > 0 and self.length not in prepared.lengths:
                return f"option length is {self.length}, its max_speculation_length is {prepared.lengths[-1]}"
        steps = max(Case(p, length).steps for p in options for length in p.lengths if self._is_solved(length))
        if steps > self.max_steps:
            return f"it has {steps} decoding steps, the method takes at most {self.max_steps}"
        return None

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Solve a program for every mechanism and speculation length that its simple bound does not rule out."""
        options = [prepare(problem, mechanism) for mechanism in problem.mechanisms]
        misfits = [prepared.misfit() for prepared in options]
        able = [prepared for prepared, misfit in zip(options, misfits, strict=True) if misfit is None]
        if not able:
            return Outcome.infeasible(next(misfit for misfit in misfits if misfit is not None))
        for prepared in able:
            offer_quick_plan(prepared, budget)
        budget.check()
        cases = [Case(prepared, length) for prepared in able for length in prepared.lengths]
        bounds = {case: case.simple_bound() for case in cases}
        stats = {"programs": 0, "nodes": 0}
        for case in sorted(cases, key=bounds.__getitem__):
            assert budget.objective is not None
            budget.improve_bound(min(bounds.values()))
            budget.check()
            if self._is_solved(case.length) and bounds[case] < budget.objective:
                bounds[case] = max(bounds[case], solve_case(case, budget, stats))
        return Outcome(plan=budget.incumbent, bound=min(bounds.values()), stats=dict(stats))

    def _is_solved(self, length: int) -> bool:
        return self.length is None or length in (0, self.length)


@dataclass(frozen=True)
class Shape:
    """What the stage times and the memory of a batch depend on.

    Parameters
    ----------
    size
        Number of tasks b.
    padded_input, longest_output
        Lengths that its tasks are padded to (Eq. 8, 11).
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
        """Every shape that fits the memory (Eq. 9-10) and that enough tasks can fill."""
        inputs, outputs = self.prepared.inputs, self.prepared.outputs
        return [
            Shape(size, float(padded), float(longest))
            for padded, longest in product(np.unique(inputs), np.unique(outputs))
            for size in range(1, int(np.sum((inputs <= padded) & (outputs <= longest))) + 1)
            if self.prepared.fits(size, padded, longest)
        ]

    @cached_property
    def draft(self) -> Floats:
        """T^d of every shape (row) at every decoding step (column); 0 once its batch is done, or without drafting."""
        return self._table(self._draft_seconds)

    @cached_property
    def verify(self) -> Floats:
        """T^v of every shape (row) at every decoding step (column); 0 once its batch is done."""
        return self._table(self._verify_seconds)

    def takes(self, shape: Shape, task: int) -> bool:
        """Tell whether a task may join a batch of a shape: it is padded, never cut."""
        prepared = self.prepared
        return bool(prepared.inputs[task] <= shape.padded_input and prepared.outputs[task] <= shape.longest_output)

    def simple_bound(self) -> float:
        """Return a bound on the objective: each task's share of the cheapest batch that it may join, summed.

        Each stage alone is busy for the sum of its batches' times, and each batch divides its time among its tasks.
        """
        draft, verify = self.draft.sum(axis=1), self.verify.sum(axis=1)
        loads = [draft, verify] if self.prepared.mechanism == "pipelined" else [draft + verify]
        sizes = np.array([shape.size for shape in self.shapes])
        inference = 0.0
        for load in loads:
            share = load / sizes
            least = [
                min(share[s] for s, shape in enumerate(self.shapes) if self.takes(shape, task))
                for task in range(self.prepared.tasks)
            ]
            inference = max(inference, sum(least))
        return float(inference) * (1.0 - 1e-12) + self.prepared.communication_seconds

    def _table(self, stage: Any) -> Floats:
        table = np.zeros((len(self.shapes), self.steps))
        for row, shape in enumerate(self.shapes):
            steps = int(self.prepared.steps_of(np.array([shape.longest_output]), self.length)[0])
            table[row, :steps] = [stage(shape, n) for n in range(1, steps + 1)]
        return table

    def _draft_seconds(self, shape: Shape, n: int) -> float:
        """Return T^d at step n: l passes of one token each, the very first one over the whole input (Eq. 13, 19)."""
        problem = self.prepared.problem
        if self.prepared.mechanism == "autoregressive":
            return 0.0
        assert problem.draft is not None and problem.draft_runtime is not None
        generated = (n - 1) * self.prepared.tokens_per_step(self.length)
        seconds = 0.0
        for guess in range(1, self.length + 1):
            new = shape.padded_input if n == guess == 1 else 1.0
            total = shape.padded_input + generated + guess - 1
            flops = pass_flops(problem.draft, new, total, 1)
            seconds += float(problem.draft_runtime.seconds(shape.size, flops))
        return seconds

    def _verify_seconds(self, shape: Shape, n: int) -> float:
        """Return T^v at step n: one pass over the guesses and one token, or the whole input at first (Eq. 14, 18)."""
        problem = self.prepared.problem
        generated = (n - 1) * self.prepared.tokens_per_step(self.length)
        new = shape.padded_input + self.length if n == 1 else 1.0 + self.length
        total = shape.padded_input + generated + self.length
        flops = pass_flops(problem.verify, new, total, 1 + self.length)
        return float(problem.verify_runtime.seconds(shape.size, flops))


def pass_flops(model: Decoder, new: float, total: float, logits: int) -> Floats:
    """Return the operations of a forward pass of `new` tokens over a total length, per task (Eq. 11-12)."""
    flops = model.flops_per_token * new + model.flops_per_token_pair * new * total + model.flops_per_logit * logits
    return np.asarray(flops, dtype=np.float64)


def formulate(case: Case, unit_seconds: float) -> Any:
    """Return the program of one case as a Pyomo model, times in units of `unit_seconds`."""
    import pyomo.environ as pyo

    draft, verify = case.draft / unit_seconds, case.verify / unit_seconds
    shapes = case.shapes
    program = pyo.ConcreteModel()

    # Sets
    program.tasks = pyo.RangeSet(0, case.prepared.tasks - 1)
    program.positions = pyo.RangeSet(1, case.prepared.tasks)  # of the pipeline; as many as tasks, some stay empty
    program.steps = pyo.RangeSet(1, case.steps)
    program.shapes = pyo.RangeSet(0, len(shapes) - 1)

    # Variables
    program.joins = pyo.Var(program.tasks, program.positions, domain=pyo.Binary)  # the task runs at the position
    program.has = pyo.Var(program.positions, program.shapes, domain=pyo.Binary)  # the batch there has the shape
    program.drafted = pyo.Var(program.positions, program.steps, domain=pyo.NonNegativeReals)  # Y[m,n,0]
    program.verified = pyo.Var(program.positions, program.steps, domain=pyo.NonNegativeReals)  # Y[m,n,1]

    def seconds(stage: Floats, m: int, n: int) -> Any:
        """The stage time of position m at step n: that of its shape, 0 if empty or done (Eq. 13-14, 18-19)."""
        return sum(float(stage[s, n - 1]) * program.has[m, s] for s in program.shapes if stage[s, n - 1] > 0)

    def before(done: Any, m: int, n: int) -> Any:
        """The time at which a stage is free for position m: 0 for the first."""
        return done[m - 1, n] if m > 1 else 0.0

    # Objective: the makespan of every decoding step, summed (Eq. 21-22)
    last = case.prepared.tasks
    program.inference = pyo.Objective(expr=sum(program.verified[last, n] for n in program.steps))

    # (24c-e) Every task runs at exactly one position.
    program.once = pyo.Constraint(
        program.tasks, rule=lambda p, k: sum(p.joins[k, m] for m in p.positions) == 1
    )  # fmt: skip
    # A batch has one shape; an empty position has none.
    program.one_shape = pyo.Constraint(
        program.positions, rule=lambda p, m: sum(p.has[m, s] for s in p.shapes) <= 1
    )  # fmt: skip
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
        rule=lambda p, m: sum(p.joins[k, m] for k in p.tasks) == sum(shapes[s].size * p.has[m, s] for s in p.shapes),
    )
    # The batch is padded to its longest input, and decodes to its longest output (Eq. 8, 11); with the shapes that
    # exist this is the memory constraint, too (24b).
    program.padded = pyo.Constraint(
        program.tasks,
        program.positions,
        rule=lambda p, k, m: p.joins[k, m] <= sum(p.has[m, s] for s in p.shapes if case.takes(shapes[s], k)),
    )
    if case.prepared.mechanism == "pipelined":
        # The draft stage takes one batch after the other (Eq. 20).
        program.draft_stage = pyo.Constraint(
            program.positions,
            program.steps,
            rule=lambda p, m, n: p.drafted[m, n] >= before(p.drafted, m, n) + seconds(draft, m, n),
        )
        # Verification waits for the guesses of its own batch (Eq. 20) ...
        program.after_draft = pyo.Constraint(
            program.positions,
            program.steps,
            rule=lambda p, m, n: p.verified[m, n] >= p.drafted[m, n] + seconds(verify, m, n),
        )
        # ... and for the batch before (Eq. 20).
        program.after_verify = pyo.Constraint(
            program.positions,
            program.steps,
            rule=lambda p, m, n: p.verified[m, n] >= before(p.verified, m, n) + seconds(verify, m, n),
        )
    else:
        # Without overlap both stages of a batch wait for the batch before; autoregressive serving drafts nothing.
        program.one_after_the_other = pyo.Constraint(
            program.positions,
            program.steps,
            rule=lambda p, m, n: p.verified[m, n] >= before(p.verified, m, n) + seconds(draft + verify, m, n),
        )
    return program


def solve_case(case: Case, budget: Budget, stats: dict[str, int]) -> float:
    """Offer the best plan of one case and return a bound on its objective.

    Raises
    ------
    OutOfTime, Stopped
        If HiGHS ended early; its plan is offered and the budget has seen a bound for all cases by then.
    """
    from pyomo.contrib.solver.common.results import SolutionStatus, TerminationCondition
    from pyomo.contrib.solver.solvers.highs import Highs

    unit = 1.0
    program = formulate(case, unit)
    results = Highs().solve(
        program,
        load_solutions=False,
        raise_exception_on_nonoptimal_result=False,
        time_limit=None if np.isinf(budget.remaining) else budget.remaining,
        rel_gap=budget.gap,
        abs_gap=0.0,
        solver_options={},
    )
    print(results.termination_condition, results.objective_bound, results.incumbent_objective)
    return 0
