"""Draft allocation: `water-level` against a heap in pure Python, the call of a controller, and a
million clients.
"""

from __future__ import annotations

import heapq
import time

import numpy as np
from table import Benchmark, Row, exponent, median_seconds

import specopt
from specopt.solvers.draft_allocation import fast


def heap_of_marginals(weights: list[float], rates: list[float], budget: int) -> list[int]:
    """Allocate by the textbook heap, which pops the largest marginal `budget` times, with plain
    lists and running products.
    """
    drafts = [0] * len(weights)
    heap = [
        (-weight * rate, client)
        for client, (weight, rate) in enumerate(zip(weights, rates, strict=True))
    ]
    heapq.heapify(heap)
    replace = heapq.heapreplace
    for _ in range(budget):
        marginal, client = heap[0]
        drafts[client] += 1
        replace(heap, (marginal * rates[client], client))
    return drafts


def _uniform(clients: int, budget: int, cap: int = 0) -> specopt.DraftAllocationProblem:
    problem = specopt.generate(
        "draft-allocation/uniform", clients=clients, budget=budget, cap=cap, seed=1
    )
    assert isinstance(problem, specopt.DraftAllocationProblem)
    return problem


def _objective(problem: specopt.DraftAllocationProblem, drafts: object) -> float:
    plan = specopt.DraftAllocationPlan(draft_tokens=drafts)  # type: ignore[arg-type]
    return problem.evaluate(plan).objective


def against_heap(smoke: bool) -> list[Row]:
    """Compare the bare call with the heap on the same lists and arrays. Conversion is not timed."""
    rows = []
    for per_client, target in ((4, 20), (100, 300)):
        clients = 100 if smoke else 10_000
        problem = _uniform(clients, per_client * clients)
        weights, rates, budget = problem.weights, problem.acceptance_rates, problem.budget_tokens
        lists, out = (weights.tolist(), rates.tolist()), np.empty(clients, np.int64)
        ours = median_seconds(
            lambda w=weights, a=rates, c=budget, o=out: fast.allocate(w, a, c, None, o), 31
        )
        rival = median_seconds(lambda w=lists, c=budget: heap_of_marginals(*w, c), 3)
        best, theirs = (
            _objective(problem, out),
            _objective(problem, heap_of_marginals(*lists, budget)),
        )
        assert abs(best - theirs) <= 1e-12 * best, "both must find the same objective"
        rows.append(
            Row(
                f"water-level against a pure-Python heap, N = {clients:,}, C = {per_client} N",
                f"{rival / ours:.0f} times faster ({1e3 * ours:.2f} ms, {1e3 * rival:.0f} ms)",
                f"{target} times",
                rival / ours >= target,
            )
        )
    return rows


def per_round(smoke: bool) -> list[Row]:
    """Time the call of a controller for 8 clients and 20 tokens, in a loop of many calls."""
    rows = []
    for cap in (0, 5):
        problem = _uniform(8, 20, cap)
        weights, rates, caps, out = (
            problem.weights,
            problem.acceptance_rates,
            problem.max_draft_tokens,
            np.empty(8, int),
        )
        calls = 100 if smoke else 10_000
        fast.allocate(weights, rates, 20, caps, out)
        start = time.perf_counter()
        for _ in range(calls):
            fast.allocate(weights, rates, 20, caps, out)
        seconds = (time.perf_counter() - start) / calls
        rows.append(
            Row(
                f"fast.allocate, N = 8, C = 20{', caps' if cap else ''}: mean of {calls:,} calls",
                f"{1e6 * seconds:.2f} microseconds",
                "10 microseconds",
                seconds <= 10e-6,
            )
        )
    return rows


def growth(smoke: bool) -> list[Row]:
    """Measure how the cost grows with clients and budget, up to a million clients, and the complete
    `solve` at that size.
    """
    rows = []
    sizes = [100, 300, 1000] if smoke else [10_000, 100_000, 1_000_000]
    seconds = []
    for clients in sizes:
        problem, out = _uniform(clients, 4 * clients), np.empty(clients, np.int64)
        arguments = problem.weights, problem.acceptance_rates, problem.budget_tokens, None, out
        seconds.append(median_seconds(lambda a=arguments: fast.allocate(*a)))
    rows.append(
        Row(
            f"fast.allocate, N = {sizes[-1]:,}, C = 4 N",
            f"{1e3 * seconds[-1]:.1f} ms",
            "1 s",
            seconds[-1] <= 1.0,
        )
    )
    rows.append(Row("growth with N at C = 4 N", f"N^{exponent(sizes, seconds):.2f} over {sizes}"))
    budgets = [4 * sizes[0], 40 * sizes[0], 400 * sizes[0]]
    problem, out = _uniform(sizes[0], 0), np.empty(sizes[0], np.int64)
    by_budget = [
        median_seconds(
            lambda c=c, p=problem, o=out: fast.allocate(p.weights, p.acceptance_rates, c, None, o),
            31,
        )
        for c in budgets
    ]
    rows.append(
        Row(
            f"growth with C at N = {sizes[0]:,}",
            f"C^{exponent(budgets, by_budget):.2f} over {budgets}",
        )
    )
    problem = _uniform(sizes[-1], 4 * sizes[-1])
    results = [specopt.solve(problem) for _ in range(1 if smoke else 3)]
    whole = float(np.median([result.seconds for result in results]))
    rows.append(
        Row(
            f"solve, certificate, judge and digest of the problem included, N = {sizes[-1]:,}",
            f"{results[0].status.value} in {whole:.2f} s",
            "1 s",
            results[0].status == "optimal" and whole <= 1.0,
        )
    )
    return rows


BENCHMARKS = (
    Benchmark("draft-allocation: water level against a heap", against_heap),
    Benchmark("draft-allocation: one round of a controller", per_round),
    Benchmark("draft-allocation: growth", growth),
)
