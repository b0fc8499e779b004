"""The methods of verification batching against enumeration in rational numbers, and where Algorithm
1 fails.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import verification_batch as naive

from specopt import (
    Progress,
    Status,
    Unsupported,
    VerificationBatchPlan,
    VerificationBatchProblem,
    generate,
    solve,
)
from specopt.api.library import load_saved
from specopt.kinds.verification_batch.strategies import problems as verification_batches
from specopt.solvers.budget import Budget
from specopt.solvers.verification_batch import METHODS, prepare, threshold
from specopt.solvers.verification_batch.baselines import Algorithm1
from specopt.solvers.verification_batch.kernels.labels import best_of_few
from specopt.solvers.verification_batch.prepare import Prepared
from specopt.solvers.verification_batch.threshold import Threshold

FAMILIES = ("warm", "mixed", "tight", "memory-bound")


def make(family: str, **parameters: Any) -> VerificationBatchProblem:
    """A problem of a family."""
    problem = generate(f"verification-batch/{family}", **parameters)
    assert isinstance(problem, VerificationBatchProblem)
    return problem


def batch_of(problem: VerificationBatchProblem, method: str) -> list[int]:
    """The batch of a method."""
    plan = solve(problem, method).plan
    assert isinstance(plan, VerificationBatchPlan)
    return [int(i) for i in plan.batch]


@settings(max_examples=50)
@given(verification_batches())
def test_all_agree_with_enumeration(problem: VerificationBatchProblem) -> None:
    """Tests that exact methods find the optimum of enumeration, and that bounds and heuristics
    enclose it.
    """
    optimum = float(naive.optimum(problem.to_dict()))
    for method in METHODS:
        if method.name == "milp":
            continue
        result = solve(problem, method.name)
        assert result.objective is not None and result.bound is not None
        assert result.objective <= optimum <= result.bound * (1 + 1e-9)
        assert isinstance(result.plan, VerificationBatchPlan)
        assert naive.feasible(problem.to_dict(), result.plan.batch.tolist())
        if method.exact:
            assert result.objective == optimum
            assert result.status is Status.OPTIMAL
        if optimum > 0 and method.name != "algorithm-1":
            hopeful = [i for i in range(problem.requests) if naive.feasible(problem.to_dict(), [i])]
            assert len(result.plan.batch) > 0
            assert result.stats["hopeless"] == [
                i for i in range(problem.requests) if i not in hopeful
            ]


@settings(max_examples=75)
@given(verification_batches(requests=(1, 8), ample_memory=True))
def test_sweep_has_half(problem: VerificationBatchProblem) -> None:
    """Tests that the sweep is worth at least half of the optimum where memory is slack."""
    result = solve(problem, "sweep")
    assert result.objective is not None
    assert 2 * result.objective >= float(naive.optimum(problem.to_dict()))


@settings(max_examples=50)
@given(verification_batches())
def test_algorithm_1_as_printed(problem: VerificationBatchProblem) -> None:
    """Tests that both variants are the algorithm line by line."""
    assert batch_of(problem, "algorithm-1") == sorted(
        naive.algorithm_1(problem.to_dict(), drop_hopeless=False)
    )
    assert batch_of(problem, "algorithm-1-drop") == sorted(
        naive.algorithm_1(problem.to_dict(), drop_hopeless=True)
    )


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("requests", [30, 100])
def test_exact_methods_agree(family: str, requests: int) -> None:
    """Tests that labels and integer programs find the same optimum, and that the sweep is next to
    it.
    """
    for seed in range(3):
        problem = make(family, requests=requests, seed=seed)
        best, labels, quick = (solve(problem, name) for name in ("threshold", "pareto", "sweep"))
        assert best.status is labels.status is Status.OPTIMAL
        assert best.objective == pytest.approx(labels.objective, rel=1e-10)
        assert (
            best.objective is not None and quick.objective is not None and quick.bound is not None
        )
        assert quick.objective <= best.objective * (1 + 1e-10) <= quick.bound * (1 + 2e-10)
        assert quick.objective >= 0.98 * best.objective


@pytest.mark.parametrize("family", FAMILIES)
def test_integer_program_agrees(family: str) -> None:
    """Tests that the plain integer program finds the same optimum."""
    problem = make(family, requests=25, seed=5)
    assert solve(problem, "milp").objective == pytest.approx(solve(problem).objective, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_a_thousand(family: str) -> None:
    """Tests that the default proves its plan for 1000 requests."""
    result = solve(make(family, requests=1000, seed=1), time_limit=600)
    assert result.status is Status.OPTIMAL


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("levels", [1, 2, 9])
def test_blocks_bound_each_of_their_deadlines(
    family: str, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that no batch is worth more than the bound of its tightest deadline, at every level."""
    monkeypatch.setattr(prepare, "PARTS", 2)
    for seed in range(3):
        problem = make(family, requests=9, seed=seed)
        prepared, budget = Prepared(problem), Budget(problem)
        budget.offer(VerificationBatchPlan(batch=np.empty(0, np.int64)))
        bound, _, _ = prepared.bounds(budget, 0.0, levels)
        batches = (c for k in range(1, 10) for c in itertools.combinations(range(9), k))
        for batch in filter(prepared.admits, batches):
            last = max(prepared.items.tolist().index(i) for i in batch)
            worth = float(problem.expected_tokens[list(batch)].sum())
            assert worth <= bound[np.searchsorted(prepared.ends, last, side="right")] * (1 + 1e-12)


@pytest.mark.parametrize("family", ["warm", "memory-bound", "density-trap"])
def test_a_hundred_thousand(family: str) -> None:
    """Tests that the first plan is next to the best one, and that bounds of blocks prove it within
    5 percent at once.
    """
    problem = make(family, requests=100_000)
    seen: list[Progress] = []

    def stop(progress: Progress) -> bool:
        seen.append(progress)
        return progress.gap is not None and progress.gap <= 0.05

    result = solve(problem, callback=stop)
    assert result.gap is not None and result.gap <= 0.05 and len(seen) <= 10
    assert seen[0].objective is not None and result.bound is not None
    assert seen[0].objective >= 0.9 * result.bound


def two(**fields: Any) -> VerificationBatchProblem:
    """Two requests that cost 1 s each, without overhead."""
    data = {
        "format": "specopt/1",
        "kind": "verification-batch",
        "now_seconds": 0.0,
        "memory_bytes": 100.0,
        "expected_tokens": [1.0, 1.0],
        "new_tokens": [1, 1],
        "cached_tokens": [0, 0],
        "request_memory_bytes": [1.0, 1.0],
        "deadline_seconds": [10.0, 10.0],
        "estimator": {
            "seconds_per_new_token": 1.0,
            "seconds_per_interaction": 0.0,
            "seconds_per_cached_token": 0.0,
            "overhead_seconds": 0.0,
        },
    }
    return VerificationBatchProblem.from_dict(data | fields)


def test_deadlock() -> None:
    """Tests that one late request empties the batch of Algorithm 1 as printed for ever, and of no
    other method.
    """
    late = two(deadline_seconds=[0.5, 10.0])
    for now in (0.0, 1.0, 5.0):
        assert batch_of(dataclasses.replace(late, now_seconds=now), "algorithm-1") == []
    for method in METHODS:
        if method.name != "algorithm-1":
            assert batch_of(late, method.name) == [1]
            assert solve(late, method.name).stats["hopeless"] == [0]


@pytest.mark.parametrize("many", [10.0, 1e6])
def test_algorithm_1_is_unbounded(many: float) -> None:
    """Tests that a dense trifle keeps Algorithm 1 from a request worth any multiple, dropped or
    not.
    """
    problem = two(expected_tokens=[1.0, many], new_tokens=[1, 1], deadline_seconds=[1.0, 2.0])
    dense = dataclasses.replace(problem, deadline_seconds=np.ones(2))
    assert batch_of(dense, "algorithm-1-drop") == [0]
    assert solve(dense).objective == many
    assert solve(dense, "sweep").objective == many


def test_cost_of_the_batch_alone() -> None:
    """Tests that with v = w + c a request turns critical earlier."""
    estimator = {**two().to_dict()["estimator"], "overhead_seconds": 1.0}
    problem = two(
        estimator=estimator,
        deadline_seconds=[10.0, 3.5],
        guard_seconds=1.75,
        expected_tokens=[2.0, 1.0],
    )
    assert solve(problem, Algorithm1()).stats["critical"] == 0
    assert solve(problem, Algorithm1(cost="alone")).stats["critical"] == 1


def test_baselines_by_hand() -> None:
    """Tests that the disciplines stop at the first request that does not fit, or skip it."""
    problem = two(
        expected_tokens=[1.0, 1.0, 1.0],
        new_tokens=[2, 2, 1],
        cached_tokens=[0, 0, 0],
        request_memory_bytes=[1.0, 1.0, 1.0],
        deadline_seconds=[5.0, 3.0, 4.0],
    )
    assert batch_of(problem, "fcfs") == [0]
    assert batch_of(problem, "edf") == [1, 2]
    skipping = solve(problem, next(m for m in METHODS if m.name == "fcfs")(skip=True)).plan  # type: ignore[call-arg]
    assert skipping == VerificationBatchPlan(batch=np.array([0, 2]))


def test_out_of_time_keeps_plan_and_bound() -> None:
    """Tests that without time there is a feasible plan and a valid bound."""
    problem = make("mixed", requests=200, seed=1)
    best = solve(problem)
    quick = solve(problem, time_limit=0)
    assert quick.objective is not None and quick.bound is not None and best.objective is not None
    assert 0 < quick.objective <= best.objective <= quick.bound


def test_warm_start() -> None:
    """Tests that a start is a plan to improve on."""
    problem = make("tight", requests=40, seed=2)
    best = solve(problem)
    assert solve(problem, Threshold(), warm_start=best).objective == best.objective


def test_refusals() -> None:
    """Tests that enumeration and the plain integer program refuse what is too large."""
    for method, requests in (("brute-force", 17), ("milp", 301)):
        with pytest.raises(
            Unsupported,
            match=f"it has {requests} requests.*; methods that can: auto, threshold, sweep",
        ):
            solve(make("warm", requests=requests), method)


@pytest.mark.parametrize("family", FAMILIES)
def test_integer_programs_settle_it_too(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that without labels, and without polishing, HiGHS finds the same optimum."""
    monkeypatch.setattr(Threshold, "few_labels", -1)
    monkeypatch.setattr(Threshold, "polished", 0)
    monkeypatch.setattr(threshold, "MEETING", -1)
    for seed in range(3):
        problem = make(family, requests=40, seed=seed)
        result = solve(problem)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(solve(problem, "pareto").objective, rel=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_two_halves_have_the_best_subset(seed: int) -> None:
    """Tests that subsets of two halves, combined, are worth the best of all subsets."""
    rng = np.random.default_rng(seed)
    values, seconds, memory = rng.integers(1, 9, (3, seed % 12)).astype(np.float64)
    room, space = rng.uniform(0.0, 0.7) * seconds.sum(), rng.uniform(0.2, 1.0) * memory.sum()
    bits = int(best_of_few(values, seconds, memory, room, space))
    chosen = [k for k in range(len(values)) if bits >> k & 1]
    assert seconds[chosen].sum() <= room and memory[chosen].sum() <= space
    every = (
        c for k in range(len(values) + 1) for c in itertools.combinations(range(len(values)), k)
    )
    assert values[chosen].sum() == max(
        values[list(c)].sum()
        for c in every
        if seconds[list(c)].sum() <= room and memory[list(c)].sum() <= space
    )


@pytest.mark.parametrize("name", ["n60-subset-sum", "n300-s2"])
def test_correlated_batches_are_proven(name: str) -> None:
    """Tests that batches that fill time to the last digit, or by their number alone, are proven."""
    assert solve(load_saved(f"verification-batch/correlated/{name}")).status is Status.OPTIMAL


def test_integer_programs_run_beside_other_programs_of_highs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that HiGHS, whose threads belong to the process, solves here whatever number an earlier
    run asked for.
    """
    import highspy

    monkeypatch.setattr(threshold, "MEETING", -1)
    highspy.Highs.resetGlobalScheduler(True)
    try:
        model = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy's constructor has no annotations
        for name, value in (("output_flag", False), ("threads", 3)):
            assert model.setOptionValue(name, value) == highspy.HighsStatus.kOk
        assert model.run() == highspy.HighsStatus.kOk
        result = solve(make("density-trap", seed=1), Threshold())
    finally:
        highspy.Highs.resetGlobalScheduler(True)
    assert result.status is Status.OPTIMAL
    assert result.stats["largest_program"] > 0


def test_a_sweep_that_is_told_to_end_gives_a_batch() -> None:
    """Tests that the sweep, told to end at once, still gives requests that fit together."""
    from specopt.solvers.verification_batch.kernels.bound import Items
    from specopt.solvers.verification_batch.kernels.sweep import sweep

    rng = np.random.default_rng(0)
    values, seconds = rng.uniform(1.0, 2.0, 300), rng.uniform(0.01, 0.02, 300)
    rooms, taken = np.sort(rng.uniform(0.4, 0.9, 300))[::-1].copy(), np.zeros(300, np.bool_)
    items = Items(values, seconds, np.zeros(300), rooms, 1.0)
    sweep(np.arange(1, 301), items, taken, np.ones(1, np.uint8))
    assert taken.any() and seconds[taken].sum() <= rooms[taken].min()
