"""What the methods of both serving kinds share: conditions, mechanisms that have plans, and why
others have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from specopt.models.errors import Infeasible
from specopt.models.fields import Ints
from specopt.models.problem import exceeds
from specopt.models.rates import Rates
from specopt.models.result import Conflict
from specopt.models.serving_data import ServingData, ServingPlan
from specopt.solvers.budget import Budget
from specopt.solvers.method import Condition, Method
from specopt.solvers.serving_prepare import PreparedServing

P = TypeVar("P", bound=PreparedServing)

ONE_RATE = Condition(
    "one acceptance rate for all tasks",
    lambda method, problem: (
        "a rate for each task" if isinstance(problem.acceptance_rate, Rates) else None
    ),
)
GIVEN = Condition(
    "conservative or known output lengths",
    lambda method, problem: (
        "predicted output lengths" if problem.output_lengths == "predicted" else None
    ),
)


@dataclass(frozen=True)
class ServingMethod(Method):
    """Base of the methods of both kinds."""

    size_unit = "tasks"
    bytes_per_number = 64.0
    bytes_per_part = 1700.0

    def size_of(self, problem: ServingData[Any]) -> float:
        """Return the number of tasks."""
        return problem.tasks


def able(options: Sequence[P]) -> list[P]:
    """Return the mechanisms of a problem that have plans.

    Raises
    ------
    Infeasible
        If none has, why the first has none.
    """
    misfits = [prepared.misfit() for prepared in options]
    found = [prepared for prepared, misfit in zip(options, misfits, strict=True) if misfit is None]
    if not found:
        raise Infeasible(misfits[0], conflicts(options))
    return found


def offer_if_feasible(problem: ServingData[Any], plan: ServingPlan, budget: Budget) -> bool:
    """Offer a plan if it violates nothing; return whether it does not."""
    budget.check(budget.longest_judging)
    feasible = not problem.violations(plan)
    if feasible:
        budget.offer(plan)
    return feasible


def planned_outputs(problem: ServingData[Any], quantiles: Iterable[float]) -> Iterator[Ints]:
    """Yield the output lengths to plan with: as they count, or where predicted quantiles of every
    task's samples.
    """
    if problem.output_lengths != "predicted":
        yield problem.planned_output_tokens
        return
    for share in quantiles:
        yield np.ceil(np.quantile(problem.scenarios, share, axis=0)).astype(np.int64)


def conflicts(options: Sequence[PreparedServing]) -> tuple[Conflict, ...]:
    """Return what the tasks lack that fit no batch under the first mechanism; what would help holds
    for all of them.

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
        Conflict(
            constraint=f"{name}_memory_bytes",
            index=task,
            needs=needs,
            has=has,
            least_change=helpful,
        )
        for name, task, needs, has in options[0].shortages()
    )


def _longest_outputs(prepared: PreparedServing) -> int:
    """Return the longest output that fits every model beside the longest input; 0 if none does."""
    problem = prepared.problem
    longest = int(problem.input_tokens.max())
    most = problem.max_output_tokens or int(problem.output_tokens.max())
    for name, model, limit in problem.limited_models(prepared.mechanism):
        if model.kv_bytes_per_token and not (name == "draft" and prepared.least_length == 0):
            fitting = (
                math.floor((limit - model.parameter_bytes) / model.kv_bytes_per_token) + 1 - longest
            )
            while fitting > 0 and exceeds(
                model.parameter_bytes + model.kv_bytes_per_token * (longest + fitting), limit
            ):
                fitting -= 1
            most = min(most, fitting)
    return max(0, most)
