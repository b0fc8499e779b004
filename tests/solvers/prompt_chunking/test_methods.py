"""The methods and the bound of prompt chunking against every plan there is, played in rational
arithmetic.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from oracles import prompt_chunking as naive

from specopt import PromptChunkingProblem, Unsupported
from specopt.kinds.prompt_chunking.strategies import problems as prompt_chunkings
from specopt.models.errors import OutOfTime
from specopt.solvers.budget import Budget
from specopt.solvers.prompt_chunking.baselines import Fixed
from specopt.solvers.prompt_chunking.deadline import Deadline
from specopt.solvers.prompt_chunking.method import path_bound

HEURISTICS = ("deadline", "equation-3", "best-equal", "geometric", "fixed", "whole")


def setting(**parameters: Any) -> Any:
    """A problem of the paper's family."""
    return generate("prompt-chunking/paper-4", **parameters)


@given(prompt_chunkings())
def test_bound_optimum_heuristics(problem: PromptChunkingProblem) -> None:
    """Tests that brute force is the oracle's optimum, bounds are below it, and no heuristic is."""
    optimum = float(naive.optimum(problem.to_dict()))
    assert solve(problem, "brute-force").objective == pytest.approx(optimum, rel=1e-12)
    assert path_bound(problem) <= optimum * (1 + 1e-12)
    for method in (*HEURISTICS, Deadline(enumerate_places=0)):
        result = solve(problem, method)
        assert problem.widened(path_bound(problem)) * (1 - 1e-12) <= result.bound <= optimum
        assert result.objective >= optimum * (1 - 1e-12)


@settings(max_examples=40)
@given(prompt_chunkings(tokens=(6, 14)))
def test_search_near_the_optimum(problem: PromptChunkingProblem) -> None:
    """Tests that bounds hold and the search comes close on prompts with thousands of plans, none of
    them enumerated.
    """
    optimum = solve(problem, "brute-force").objective
    result = solve(problem, Deadline(enumerate_places=0))
    assert result.bound <= optimum * (1 + 1e-12) + 1e-15
    assert optimum * (1 - 1e-12) <= result.objective <= optimum * 1.1 + 1e-12


@pytest.mark.parametrize(
    ("tokens", "stages", "wait", "seed", "max_chunks"),
    [
        (270, 5, "none", 638113, 3),
        (102, 2, "none", 316926, None),
        (316, 3, "serial", 605713, None),
        (432, 1, "none", 473948, None),
    ],
)
def test_search_leaves_local_optima(
    tokens: int, stages: int, wait: str, seed: int, max_chunks: int | None
) -> None:
    """Tests that the default is within 0.2 % of the optimum where moves of boundaries end up to 1.5
    % above it.
    """
    problem = generate(
        "prompt-chunking/random",
        prompt_tokens=tokens,
        pipeline_length=stages,
        wait=wait,
        download="last",
        seed=seed,
    )
    problem = dataclasses.replace(problem, max_chunks=max_chunks)
    assert solve(problem, "deadline").objective <= solve(problem, "exact").objective * 1.002


@given(prompt_chunkings())
def test_best_equal_is_the_best_of_its_kind(problem: PromptChunkingProblem) -> None:
    """Tests that no size on the grid and within the cap gives better equal chunks."""
    data = problem.to_dict()
    N, grid = problem.prompt_tokens, problem.grid_tokens or 1
    every = []
    for size in range(grid, N + grid, grid):
        full = (N - 1) // size
        plan = [size] * full + [N - full * size]
        if len(plan) <= (problem.max_chunks or N):
            every.append(float(naive.first_token(data, plan)))
    assert solve(problem, "best-equal").objective == pytest.approx(min(every), rel=1e-12)


def test_fixed() -> None:
    """Tests that the size goes up to the grid and to what the cap needs, and the last chunk takes
    the rest.
    """
    fields: dict[str, int]
    for size, fields, chunks in (
        (30, {}, [30, 30, 30, 10]),
        (500, {}, [100]),
        (30, {"grid_tokens": 16}, [32, 32, 32, 4]),
        (30, {"max_chunks": 3}, [34, 34, 32]),
        (30, {"max_chunks": 3, "grid_tokens": 16}, [48, 48, 4]),
    ):
        problem = dataclasses.replace(setting(prompt_tokens=100), **fields)
        assert solve(problem, Fixed(chunk_tokens=size)).plan.chunks.tolist() == chunks


def test_geometric_of_a_few_tokens() -> None:
    """Tests that no chunk is empty where there are hardly more tokens than chunks."""
    for tokens in range(1, 8):
        problem = setting(prompt_tokens=tokens, message_milliseconds=0)
        assert solve(problem, "geometric").plan.chunks.min() >= 1


def test_brute_force_refuses() -> None:
    """Tests that long prompts are refused with the number of places, and a grid makes them fit."""
    with pytest.raises(
        Unsupported,
        match=r"it has 17 positions where a chunk may end, but the method accepts at most 16",
    ):
        solve(setting(prompt_tokens=17), "brute-force")
    solve(dataclasses.replace(setting(prompt_tokens=100), grid_tokens=10), "brute-force")


def test_starts_are_the_plan_where_the_search_is_not_compiled_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that a solve that runs out of time before its search is there has the better plan of
    its starts.
    """
    load = Budget.load

    class Late:
        """The kernels, but for the last one, which takes too long."""

        def __init__(self, kernels: Any) -> None:
            self.kernels = kernels

        def __getattr__(self, name: str) -> Any:
            if name == "search":
                raise OutOfTime
            return getattr(self.kernels, name)

    problem = generate(
        "prompt-chunking/random", prompt_tokens=270, pipeline_length=5, wait="none", seed=638113
    )
    monkeypatch.setattr(Budget, "load", lambda self, name: Late(load(self, name)))
    late = solve(problem, "deadline")
    assert (late.termination, late.status) == ("time_limit", "feasible")
    assert late.objective <= 0.95 * solve(problem, "whole").objective


@pytest.mark.parametrize("tokens", [351, 891, 2000])
def test_default_beats_equation_3(tokens: int) -> None:
    """Tests that the default is 1.14 times faster than Eq. 3 where a message costs 3 ms, and
    certified.
    """
    problem = setting(prompt_tokens=tokens)
    paper, ours = solve(problem, "equation-3"), solve(problem)
    assert paper.objective >= 1.14 * ours.objective
    assert ours.gap <= 0.005
    assert np.all(np.diff(ours.plan.chunks) <= 0)


@pytest.mark.parametrize("stages", [1, 4])
@pytest.mark.parametrize("download", ["all", "last"])
def test_default_is_certified_on_long_prompts(stages: int, download: str) -> None:
    """Tests that the gap of 8192 tokens is below half a percent, for all message costs."""
    for cost in (0.0, 3.0):
        problem = setting(prompt_tokens=8192, pipeline_length=stages, message_milliseconds=cost)
        assert solve(dataclasses.replace(problem, download=download), gap=0.005).gap <= 0.005


def test_a_search_that_is_stopped_at_once_leaves_the_first_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tests that no boundary is read where a kernel has found no chunks."""
    unset = np.full(33, 1 << 40)
    monkeypatch.setattr(
        "specopt.solvers.prompt_chunking.baselines.call", lambda *arguments, **options: 0
    )
    monkeypatch.setattr(
        "specopt.solvers.prompt_chunking.baselines.np.empty", lambda *arguments: unset
    )
    assert solve(setting(prompt_tokens=40), "geometric").plan.chunks.tolist() == [40]
