"""What the methods of serving latency share: conditions, a plan to start from, the certificate, mechanisms in turn."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from specopt.models.errors import Infeasible
from specopt.models.fields import Ints
from specopt.models.problem import exceeds
from specopt.models.rates import Rates
from specopt.models.result import Conflict
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Condition, Method, Outcome, only
from specopt.solvers.serving_latency.bound import lower_bound
from specopt.solvers.serving_latency.prepare import Prepared, prepare, quick_batches

_SECONDS_PER_RUN = 1e-7, 2.5e-8  # of one decoding step, to judge a static plan, and a rebatched one

PIPELINED = only("mechanism", "pipelined", "the mechanism {}")
CONSERVATIVE = only("output_lengths", "conservative", "{} output lengths")
STATIC = only("batching", "static", "{} batching")
REBATCHED = only("batching", "rebatched", "{} batching")
TOGETHER = Condition(
    "tasks that arrive together",
    lambda method, problem: None if problem.arrival_seconds is None else "arrivals",
)
MAKESPAN = only("objective", "makespan", "the objective {}")
ONE_RATE = Condition(
    "one acceptance rate for all tasks",
    lambda method, problem: "a rate for each task" if isinstance(problem.acceptance_rate, Rates) else None,
)
GIVEN = Condition(
    "conservative or known output lengths",
    lambda method, problem: "predicted output lengths" if problem.output_lengths == "predicted" else None,
)
ALWAYS_DRAFTING = Condition(
    "drafts in every step",
    lambda method, problem: (
        "steps without drafts"
        if problem.min_speculation_length == 0 and problem.mechanism != "autoregressive"
        else None
    ),
)
LINES = Condition(
    "lines or pieces as runtimes",
    lambda method, problem: f"measured passes as {problem.tables[0]}" if problem.tables else None,
)
MEAN = only("rounds", "mean", 'the rounds "{}"')
ALIKE = Condition(
    'the rounds "slowest" of conservative output lengths',
    lambda method, problem: (
        'the rounds "slowest" of known output lengths'
        if problem.rounds == "slowest" and problem.output_lengths != "conservative"
        else None
    ),
)
KNOWN = only("output_lengths", "known", "{} output lengths")


@dataclass(frozen=True)
class ServingLatencyMethod(Method):
    """Base of the methods for `serving-latency`."""

    solves = ServingLatencyProblem
    size_unit = "tasks"
    bytes_per_number = 64.0
    bytes_per_part = 1700.0
    serves: ClassVar[tuple[Condition, ...]] = (STATIC, ONE_RATE, MAKESPAN, GIVEN)
    forms: ClassVar[tuple[Condition, ...]] = (LINES, MEAN)

    @classmethod
    def conditions(cls) -> tuple[Condition, ...]:
        """Return what the method asks of the way tasks are served, then all else."""
        return (*cls.serves, *cls.forms, *super().conditions())

    def size_of(self, problem: ServingLatencyProblem) -> float:
        """Return the number of tasks."""
        return problem.tasks

    def bytes_needed(self, problem: ServingLatencyProblem) -> dict[str, float]:
        """Return the bytes of fields and tasks, and of stage times of batches of all sizes where they are tabled."""
        needed = super().bytes_needed(problem)
        if problem.rounds == "mean" and not problem.tables:
            return needed
        steps = problem.longest_output * (problem.max_speculation_length or 1)
        return needed | {"input_tokens": 16.0 * problem.tasks**2 * steps}

    def seconds_needed(self, problem: ServingLatencyProblem) -> dict[str, float]:
        """Return what judging a plan takes: decoding steps at the longest drafts, by tasks or by batches."""
        steps = np.stack(problem.scenarios) / problem.tokens_per_step(problem.max_speculation_length or 0)
        runs, seconds = float(steps.sum()), _SECONDS_PER_RUN[problem.batching == "rebatched"]
        if problem.batching == "static" and seconds * runs > 1.0:
            runs = float(steps.max(axis=1).sum()) * self.fewest_batches(prepare(problem))
        return {"tasks times decoding steps": seconds * runs}

    def fewest_batches(self, prepared: Prepared) -> float:
        """Return a number of batches that no static plan of the method goes below, roughly."""
        return prepared.tasks / prepared.widest


def prepare_all(problem: ServingLatencyProblem) -> list[Prepared]:
    """Return the problem under each of its mechanisms that has plans.

    Raises
    ------
    Infeasible
        If none has, why the first has none.
    """
    options = [prepare(problem, mechanism) for mechanism in problem.mechanisms]
    misfits = [prepared.misfit() for prepared in options]
    able = [prepared for prepared, misfit in zip(options, misfits, strict=True) if misfit is None]
    if not able:
        raise Infeasible(misfits[0], conflicts(options))
    return able


def begun(problem: ServingLatencyProblem, budget: Budget) -> list[Prepared]:
    """Return `prepare_all`; offer plans to start from, an earlier one first: others are judged if time is left."""
    able = prepare_all(problem)
    budget.offer_warm_start()
    for prepared in able:
        offer_first_plan(prepared, budget)
    return able


def offer_first_plan(prepared: Prepared, budget: Budget) -> None:
    """Offer batches as large as memory allows: the fallback plan, which exists if every task fits alone."""
    batches = quick_batches(prepared)
    if batches is not None:
        budget.offer(prepared.plan(batches, prepared.lengths[0]))


def offer_if_feasible(problem: ServingLatencyProblem, plan: ServingLatencyPlan, budget: Budget) -> bool:
    """Offer a plan if it violates nothing; return whether it does not."""
    budget.check(budget.longest_judging)
    feasible = not problem.violations(plan)
    if feasible:
        budget.offer(plan)
    return feasible


def planned_outputs(problem: ServingLatencyProblem, quantiles: Iterable[float]) -> Iterator[Ints]:
    """Yield the output lengths to plan with: as they count, or where predicted quantiles of every task's samples."""
    if problem.output_lengths != "predicted":
        yield problem.planned_output_tokens
        return
    for share in quantiles:
        yield np.ceil(np.quantile(problem.scenarios, share, axis=0)).astype(np.int64)


def certify(prepared: Prepared, plan: ServingLatencyPlan, budget: Budget) -> Outcome:
    """Return the outcome of a heuristic's plan, with a bound on every plan under its mechanism."""
    budget.offer(plan)
    return Outcome(plan=plan, bound=lower_bound(prepared, budget))


def best_of_mechanisms(problem: ServingLatencyProblem, budget: Budget, solve: Callable[[Prepared], Outcome]) -> Outcome:
    """Return the best plan of the problem's mechanisms, each solved alone, with a bound that holds for all of them."""
    options = prepare_all(problem)
    for prepared in options:
        offer_first_plan(prepared, budget)
    found, objectives = [], []
    for prepared in options:
        found.append(solve(prepared))
        if len(options) > 1:  # at once: the budget still has the evaluation of the last plan
            objectives.append(budget.evaluate(found[-1].plan).objective)  # type: ignore[arg-type]
    best = found[int(np.argmin(objectives or [0.0]))]
    bounds = [outcome.bound for outcome in found if outcome.bound is not None]
    return replace(best, bound=min(bounds) if len(bounds) == len(found) else None)


def conflicts(options: Sequence[Prepared]) -> tuple[Conflict, ...]:
    """Return what the tasks lack that fit no batch under the first mechanism; what would help holds for all of them.

    A plan exists under a mechanism just if every task fits alone, so that it is proven.
    """
    problem = options[0].problem
    helpful: dict[str, float] = {}
    for prepared in options:
        lacking = prepared.shortages()
        for name, _, needs, _ in lacking:
            if len({model for model, *_ in lacking}) == 1:
                field = f"{name}_memory_bytes"
                helpful[field] = max(needs, helpful.get(field, 0.0))
        most = _longest_outputs(prepared)
        if problem.output_lengths == "conservative" and most >= int(problem.output_tokens.max()):
            helpful["max_output_tokens"] = max(most, helpful.get("max_output_tokens", 0))
    return tuple(
        Conflict(constraint=f"{name}_memory_bytes", index=task, needs=needs, has=has, least_change=helpful)
        for name, task, needs, has in options[0].shortages()
    )


def _longest_outputs(prepared: Prepared) -> int:
    """Return the longest output that fits every model beside the longest input; 0 if none does."""
    problem = prepared.problem
    longest = int(problem.input_tokens.max())
    most = problem.max_output_tokens or int(problem.output_tokens.max())
    for name, model, limit in problem.limited_models(prepared.mechanism):
        if model.kv_bytes_per_token and not (name == "draft" and problem.min_speculation_length == 0):
            fitting = math.floor((limit - model.parameter_bytes) / model.kv_bytes_per_token) + 1 - longest
            while fitting > 0 and exceeds(
                model.parameter_bytes + model.kv_bytes_per_token * (longest + fitting), limit
            ):
                fitting -= 1
            most = min(most, fitting)
    return max(0, most)
