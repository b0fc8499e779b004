"""A method for tasks with different acceptance rates or predicted output lengths.

The shortest paths and columns of the other methods require a single acceptance rate for all tasks
and a single output length for each task. This method therefore solves stand-ins, which are problems
with known lengths and one rate. Each stand-in is made for one speculation length, at which every
task needs the same number of decoding steps as in the original problem. Predicted lengths are set
to the mean or a quantile of their samples.

1. `length-aware` solves each stand-in, then a stand-in for the speculation length of the resulting
   plan. The plans are evaluated on the original problem. The stand-in with the best plan is solved
   once more, with more effort.
2. The best plan is improved by moving and swapping tasks. The objective is the mean latency over
   the stand-ins of all samples, which is a sample average with the same samples for every plan.

If all tasks have the same rate, the stage times in the stand-ins are exact. Otherwise, contexts
grow at the mean rate. The lower bound comes from a relaxation in which batches may change at every
step and finished tasks leave immediately. No static plan is faster than this relaxation. For
predicted lengths with one rate, there is a second bound. In each sample, a plan takes at least as
long as a plan that is optimal for that sample alone. Such an optimal plan solves a problem with
known lengths, for which `length-aware` computes a bound. Hence the mean latency over the samples is
at least the mean of these bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from specopt.models.acceptance import all_decoding_steps, rate_that_yields
from specopt.models.errors import Infeasible, OutOfTime
from specopt.models.fields import MAX_TOKENS, Ints, NonNegativeInt
from specopt.models.problem import Plan
from specopt.models.rates import Rates
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Condition, Outcome
from specopt.solvers.serving_latency.length_aware import LengthAware
from specopt.solvers.serving_latency.method import ServingLatencyMethod, begun
from specopt.solvers.serving_latency.prepare import Prepared, prepare
from specopt.solvers.serving_latency.stages import rate, stages
from specopt.solvers.serving_method import GIVEN, ONE_RATE, offer_if_feasible, planned_outputs
from specopt.solvers.serving_prices import solved_prices

QUANTILES = (0.5, 0.75, 0.9, 1.0)
"""Quantiles of each task's output-length samples that are used as planned output lengths."""

QUICK = LengthAware(moves=100_000, rounds=0)
"""Method that solves every stand-in quickly. The best stand-in is solved once more, with more
effort.
"""

MAX_TURNS = 3
"""Maximum number of stand-ins that are solved in succession, each at the speculation length of the
previous plan.
"""

DIFFERENT = Condition(
    "a rate for each task or predicted lengths (use another method otherwise)",
    lambda method, problem: (
        "one rate and given lengths"
        if all(other.clash(method, problem) is None for other in (ONE_RATE, GIVEN))
        else None
    ),
)


@dataclass(frozen=True)
class StandIn(ServingLatencyMethod):
    """A method that solves similar problems, called stand-ins, with `length-aware`. It then
    improves the best plan with respect to its mean latency over all samples.

    Parameters
    ----------
    moves
        Number of moves and swaps of tasks that are tried at the end.
    """

    moves: NonNegativeInt = 2000

    name = "stand-in"
    source = "specopt; `length-aware` on similar problems, then descent on the sample average"
    guarantee = "a lower bound; the gap is certified, not closed"
    complexity = "same as length-aware, then O(S M^2) per move, M batches, S samples"
    serves = (DIFFERENT,)

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Solve the stand-ins, improve the best plan, and compute a lower bound."""
        longest = np.max(problem.scenarios, axis=0)
        able = begun(_known(problem, longest), budget)
        every = list(planned_outputs(problem, QUANTILES))
        if problem.output_lengths == "predicted":
            every.insert(0, np.ceil(np.mean(problem.scenarios, axis=0)).astype(np.int64))
        chosen, length = every[0], int(problem.mechanism != "autoregressive")
        for outputs in {outputs.tobytes(): outputs for outputs in every}.values():
            for plan in _plans(problem, outputs, length, QUICK, budget):
                if offer_if_feasible(problem, plan, budget) and budget.incumbent is plan:
                    chosen = outputs
        if len(every) > 1 and isinstance(budget.incumbent, ServingLatencyPlan):
            for plan in _plans(
                problem, chosen, budget.incumbent.speculation_length, LengthAware(), budget
            ):
                offer_if_feasible(problem, plan, budget)
        assert isinstance(budget.incumbent, ServingLatencyPlan)
        offer_if_feasible(problem, self._improved(problem, budget.incumbent, budget), budget)
        options = [prepare(problem, prepared.mechanism) for prepared in able]
        return Outcome(plan=budget.incumbent, bound=_bound(problem, options, budget))

    def _improved(
        self, problem: ServingLatencyProblem, plan: ServingLatencyPlan, budget: Budget
    ) -> ServingLatencyPlan:
        """Improve a plan by moves and swaps of tasks. A change is kept if it lowers the mean
        latency over all samples.
        """
        length, mechanism = plan.speculation_length, problem.mechanism_of(plan)
        kernels = budget.load("serving_latency.plans")
        kept = [
            stages(prepare(_stand_in(problem, length, outputs), mechanism), length)
            for outputs in problem.scenarios
        ]
        prepared, count = kept[0].prepared, len(plan.batches)
        slot = prepared.slots(plan)

        def seconds(slot: Ints) -> float:
            return float(np.mean([rate(at, slot, count, kernels) for at in kept]))

        best, random = seconds(slot), np.random.default_rng(budget.seed)
        for _ in range(self.moves if count > 1 else 0):
            budget.check()
            one, other = random.integers(problem.tasks, size=2)
            tried = slot.copy()
            if random.random() < 0.5:
                tried[one], tried[other] = slot[other], slot[one]
            elif np.count_nonzero(slot == slot[one]) > 1:  # no batch becomes empty
                tried[one] = slot[other]
            if (found := seconds(tried)) < best:
                best, slot = found, tried
        positions = [np.flatnonzero(slot == number) for number in range(count)]
        return replace(plan, batches=prepared.plan(positions, length).batches)


def _plans(
    problem: ServingLatencyProblem, outputs: Ints, length: int, method: LengthAware, budget: Budget
) -> Iterator[ServingLatencyPlan]:
    """Yield plans for a succession of stand-ins, in which tasks have the output lengths `outputs`.

    The first stand-in is made for the speculation length `length`, and each later one is made for
    the previous plan's speculation length.
    """
    done = set[int]()
    while length not in done and len(done) < MAX_TURNS:
        budget.check()
        done.add(length)
        inner = _solved(_stand_in(problem, length, outputs), method, budget, budget.remaining)
        if not isinstance(inner.incumbent, ServingLatencyPlan):
            return
        yield inner.incumbent
        length = inner.incumbent.speculation_length or length


def _solved(
    problem: ServingLatencyProblem,
    method: LengthAware,
    budget: Budget,
    time_limit: float,
    warm_start: Plan | None = None,
) -> Budget:
    """Run a method on another problem. Return the budget of that run, which holds the plan and the
    bound that were found.
    """
    inner = Budget(
        problem,
        time_limit=time_limit,
        seed=budget.seed,
        memory_limit=budget.memory_limit,
        warm_start=warm_start,
    )
    try:
        method.run(problem, inner)
    except Infeasible:  # a task with another rate is longer in the stand-in
        pass
    except OutOfTime:
        budget.check()
    return inner


def _stand_in(problem: ServingLatencyProblem, length: int, outputs: Ints) -> ServingLatencyProblem:
    """Return the stand-in problem, with known output lengths and one acceptance rate, for a
    speculation length.

    The tasks of the stand-in need as many decoding steps as tasks with the output lengths `outputs`
    need in the original problem.
    """
    acceptance = problem.acceptance_rate
    if isinstance(acceptance, Rates):
        tokens = problem.tokens_per_step(length)
        mean = float(tokens.mean())
        outputs = np.clip(
            np.floor(all_decoding_steps(outputs, tokens) * mean), 1, MAX_TOKENS
        ).astype(np.int64)
        acceptance = rate_that_yields(mean, length) if length else float(acceptance.values.mean())
    return replace(_known(problem, outputs), acceptance_rate=acceptance)


def _known(problem: ServingLatencyProblem, outputs: Ints) -> ServingLatencyProblem:
    """Return a copy of the problem in which `outputs` are the known output lengths."""
    return replace(
        problem,
        output_lengths="known",
        output_tokens=outputs,
        output_samples=None,
        max_output_tokens=None,
    )


def _bound(problem: ServingLatencyProblem, options: list[Prepared], budget: Budget) -> float:
    """Return a lower bound on the objective of every plan.

    The bound is the larger of a bound from token prices and, for predicted lengths with one
    acceptance rate, the mean over the samples of a separate bound for each sample.
    """
    sums = []
    for prepared in options:
        prices = solved_prices(prepared, budget)
        mean = float(np.mean([prices.makespan(outputs) for outputs in prices.outputs]))
        sums.append(prepared.communication_seconds + mean)
    if problem.output_lengths != "predicted" or ONE_RATE.clash(StandIn, problem):
        return min(sums)
    budget.improve_bound(min(sums))
    bounds: list[float] = []
    for outputs in problem.scenarios:
        share = budget.remaining / (len(problem.scenarios) - len(bounds))
        alone = _solved(_known(problem, outputs), LengthAware(), budget, share, budget.incumbent)
        bounds.append(alone.bound or 0.0)
    return max(min(sums), float(np.mean(bounds)))
