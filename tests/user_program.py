"""A user's program: everything of the front door that one uses in the first hour. A test runs it,
and mypy and pyright check its types as they check a user's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import specopt
from specopt.instances.verification_batch.workload import TABLE_12
from specopt.online import AsyncScheduler, Key, VerificationScheduler


def problem_of_own_numbers() -> specopt.DraftAllocationProblem:
    """Numbers come as lists, tuples and arrays."""
    return specopt.DraftAllocationProblem(
        acceptance_rates=[0.9, 0.6, 0.3],
        weights=(1, 1, 2),
        budget_tokens=12,
        max_draft_tokens=np.array([8, 8, 8]),
    )


def stopping_problem() -> specopt.DraftStoppingProblem:
    """Fields that are a number or a list take both."""
    return specopt.DraftStoppingProblem(
        max_draft_tokens=3,
        draft_seconds_per_token=0.01,
        round_seconds=[0.05, 0.05, 0.06, 0.06],
        rounds=[
            specopt.RoundClass(probability=0.5, acceptance_rate=0.9),
            specopt.RoundClass(probability=0.5, acceptance_rate=[0.5, 0.4, 0.3]),
        ],
        scores=specopt.Scores(accepted=[0.8, 0.2], first_rejection=[0.3, 0.7], after=(0.5, 0.5)),
    )


def equal_drafts(problem: specopt.DraftAllocationProblem) -> specopt.DraftAllocationPlan:
    """A heuristic is a plain function from a problem to a plan."""
    clients = len(problem.acceptance_rates)
    tokens = np.full(clients, problem.budget_tokens // clients)
    return specopt.DraftAllocationPlan(draft_tokens=tokens)


def solve_and_compare(folder: Path) -> None:
    """Solve, judge, print, draw, save, load and compare."""
    problem = problem_of_own_numbers()
    result = specopt.solve(problem, time_limit=5.0)
    own = specopt.solve(problem, equal_drafts)
    assert own.bound is None and own.objective is not None
    assert result.bound is not None and own.objective <= result.bound + 1e-9
    assert specopt.verify(problem, result).feasible
    print(result)
    print(problem, result.plan, specopt.verify(problem, result), sep="\n")
    picture = problem.plot(result)
    picture.save(str(folder / "plan.svg"))
    stopping = stopping_problem()
    specopt.solve(stopping).plot().save(folder / "stopping.svg")
    specopt.save(problem, folder / "problem.json")
    loaded = specopt.load(folder / "problem.json", specopt.DraftAllocationProblem)
    assert loaded.weights.tolist() == [1.0, 1.0, 2.0]
    comparison = specopt.compare([equal_drafts, "greedy"], [problem])
    comparison.plot()
    for test in specopt.paired_tests(comparison):
        print(test.first, test.second, test.first_infinite, test.p_value)
    print(comparison)


def plan_of_arrays() -> specopt.ServingLatencyPlan:
    """Batches are arrays, lists, or NumPy's integers in lists."""
    return specopt.ServingLatencyPlan(
        batches=[np.array([0, 1]), [np.int64(2), 3]],
        speculation_length=4,
        bandwidth_share=np.full(4, 0.25),
    )


def ask_what_if() -> None:
    """Ask for a front, sensitivities, robustness and a simulation."""
    problem = specopt.generate("serving-latency/paper-1", tasks=4, max_output=20, seed=1)
    assert problem.evaluate(plan_of_arrays()).objective > 0.0
    result = specopt.solve(problem, warm_start=plan_of_arrays())
    front = specopt.front(problem, "bandwidth_hz", np.array([1e7, 2e7]))
    print(front, specopt.sensitivity(problem), sep="\n")
    print(specopt.robustness(problem, result, acceptance=(0.5, 0.7)))
    print(specopt.simulate(problem, result, replications=20))


def play_policies() -> None:
    """Compare policies on workloads of own numbers."""
    goodput = specopt.GoodputWorkload(process=[0.9, 0.5], budget_tokens=8)
    print(specopt.compare_policies(["gradient", "robust"], [goodput], replications=2, rounds=50))


class Longest(specopt.Method):
    """An own method: everything to the client with the highest rate."""

    name = "longest"
    solves = specopt.DraftAllocationProblem
    source = "this file"
    guarantee = "none"
    complexity = "O(N)"

    def run(self, problem: Any, budget: specopt.Budget) -> specopt.Outcome:
        """Give the whole budget to one client."""
        tokens = np.zeros(len(problem.acceptance_rates), int)
        best = int(np.argmax(problem.acceptance_rates))
        tokens[best] = min(problem.budget_tokens, problem.max_draft_tokens[best])
        return specopt.Outcome(plan=problem.plan_type(draft_tokens=tokens))


async def verify(drafts: dict[Key, list[int]]) -> Mapping[Key, int]:
    """Accept every draft token."""
    return {key: len(draft) for key, draft in drafts.items()}


async def serve() -> int:
    """Await the verdict on a draft from a scheduler."""
    async with AsyncScheduler(VerificationScheduler(TABLE_12), verify) as scheduler:
        now = scheduler.clock()
        return await scheduler.submit(
            "a",
            [17, 4, 25],
            class_speed=4.0,
            expected_tokens=2.9,
            new_tokens=5,
            cached_tokens=200,
            response_start_seconds=now,
            tokens_done=0,
            iteration_start_seconds=now,
        )


def main(folder: Path) -> None:
    """Run all of it; files go to a folder."""
    solve_and_compare(folder)
    ask_what_if()
    play_policies()
    print(specopt.solve(problem_of_own_numbers(), Longest()))
    assert asyncio.run(serve()) == 3
