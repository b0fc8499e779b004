"""Exact prompt chunking against routes that share no code with it, and how it ends when it must end
early.
"""

from __future__ import annotations

import dataclasses
import tracemalloc
from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import prompt_chunking as rational
from oracles import prompt_chunking_exact as naive

from specopt import Progress, PromptChunkingProblem, Unsupported
from specopt.kinds.prompt_chunking.strategies import problems as prompt_chunkings
from specopt.solvers.budget import Budget
from specopt.solvers.prompt_chunking.exact import ExactChunking, enlarged
from specopt.solvers.prompt_chunking.method import offer_first_plan
from specopt.solvers.prompt_chunking.prepare import Prepared, prepare

HEURISTICS = ("deadline", "equation-3", "best-equal", "geometric", "fixed", "whole")


def setting(**parameters: Any) -> Any:
    """A problem of the paper's family."""
    return generate("prompt-chunking/paper-4", **parameters)


def proven(problem: PromptChunkingProblem) -> Any:
    """The result of the method, which must have proven it."""
    result = solve(problem, "exact")
    assert (result.status, result.termination, result.gap) == ("optimal", "converged", 0.0)
    assert result.bound <= result.objective
    return result


def unaided(problem: PromptChunkingProblem) -> Any:
    """The result from one chunk and the simplest bound: deadlines and labels must do all the
    work.
    """

    def prepare_and_bound(problem: PromptChunkingProblem, budget: Budget, *late: str) -> Prepared:
        offer_first_plan(problem, budget)
        return prepare(problem)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("specopt.solvers.prompt_chunking.exact.prepare_and_bound", prepare_and_bound)
        patch.setattr("specopt.solvers.prompt_chunking.exact.search", lambda *arguments: ())
        return proven(problem)


@settings(max_examples=75)
@given(prompt_chunkings(tokens=(1, 10)))
def test_all_compositions_unaided(problem: PromptChunkingProblem) -> None:
    """Tests that labels find and prove the optimum without a heuristic's plan and bound."""
    best = naive.best_composition(problem.to_dict())
    result = unaided(problem)
    assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-15)
    assert result.bound <= best * (1 + 1e-12)


@settings(max_examples=75)
@given(prompt_chunkings(tokens=(1, 8)))
def test_rational_arithmetic(problem: PromptChunkingProblem) -> None:
    """Tests that objective and bound are those of all compositions without any rounding, in all
    modes, with ties, caps and grids.
    """
    best, result = float(rational.optimum(problem.to_dict())), proven(problem)
    assert result.objective == pytest.approx(best, rel=1e-9, abs=1e-15)
    assert result.bound <= best * (1 + 1e-12)


@st.composite
def real_settings(draw: st.DrawFn) -> dict[str, Any]:
    """Links, clouds and devices of ordinary speeds, any of which may be the bottleneck; no ties."""
    rate = st.floats(1e6, 30e6)
    gaps = draw(st.lists(st.integers(5, 60), min_size=2, max_size=4))
    rises = draw(
        st.lists(st.floats(0.0, 0.1, allow_subnormal=False), min_size=len(gaps), max_size=len(gaps))
    )
    problem: dict[str, Any] = {
        "prompt_tokens": draw(st.integers(16, 40)),
        "bytes_per_token": 10240.0,
        "uplink_bytes_per_second": draw(rate),
        "downlink_bytes_per_second": draw(rate),
        "cloud_delay": {"tokens": np.cumsum(gaps).tolist(), "seconds": np.cumsum(rises).tolist()},
        "background_tokens": draw(st.floats(0.0, 30.0, allow_subnormal=False)),
        "pipeline_length": draw(st.integers(1, 4)),
        "wait": draw(st.sampled_from(("serial", "overlap", "none"))),
        "download": draw(st.sampled_from(("all", "all", "last"))),
    }
    for name, most in (
        ("local_overhead_seconds", 0.01),
        ("local_seconds_per_token", 0.003),
        ("message_overhead_seconds", 0.01),
        ("link_latency_seconds", 0.03),
    ):
        problem[name] = draw(st.sampled_from((0.0, 1.0))) * draw(st.floats(0.1 * most, most))
    if draw(st.booleans()):
        problem["max_chunks"] = draw(st.integers(1, 8))
    return problem


@settings(max_examples=25)
@given(real_settings())
def test_dynamic_program_without_bounds(data: dict[str, Any]) -> None:
    """Tests that prompts with up to 2^39 plans have the optimum of all non-dominated states of all
    prefixes.
    """
    problem = PromptChunkingProblem.from_dict(
        {"format": "specopt/1", "kind": "prompt-chunking", **data}
    )
    best = naive.best_by_prefixes(data)
    assert proven(problem).objective == pytest.approx(best, rel=1e-9)
    assert unaided(problem).objective == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("wait", ["serial", "overlap", "none"])
@pytest.mark.parametrize("download", ["all", "last"])
@pytest.mark.parametrize("stages", [1, 4])
def test_no_heuristic_is_better(wait: Any, download: Any, stages: int) -> None:
    """Tests that every heuristic is no better than the proven optimum of 351 tokens, at any price
    of a message.
    """
    for cost in (0.0, 3.0):
        base = setting(prompt_tokens=351, pipeline_length=stages, message_milliseconds=cost)
        problem = dataclasses.replace(base, wait=wait, download=download)
        best = proven(problem).objective
        for method in HEURISTICS:
            result = solve(problem, method)
            assert result.bound <= best * (1 + 1e-9) and result.objective >= best * (1 - 1e-9)


@pytest.mark.parametrize("tokens", [891, 2000])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_published_lengths(tokens: int, stages: int) -> None:
    """Tests that the longer prompts of the paper are proven token by token, and that Eq. 3 is far
    off at P = 4.
    """
    problem = setting(prompt_tokens=tokens, pipeline_length=stages)
    best = proven(problem).objective
    assert best <= solve(problem).objective * (1 + 1e-9)
    if stages == 4:
        assert solve(problem, "equation-3").objective >= 1.14 * best


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("cap", [2, 3, 4])
def test_caps_that_bind(cap: int, stages: int) -> None:
    """Tests that caps below the best number of chunks are right: a label with fewer chunks must
    survive.
    """
    free = setting(
        prompt_tokens=60, pipeline_length=stages, message_milliseconds=0.0, model="vicuna-13b"
    )
    delay = {"tokens": [0.0, 100.0], "seconds": [0.0005, 0.12]}
    problem = PromptChunkingProblem.from_dict(
        free.to_dict() | {"cloud_delay": delay, "max_chunks": cap, "wait": "none"}
    )
    assert len(proven(dataclasses.replace(problem, max_chunks=None)).plan.chunks) > cap
    assert unaided(problem).objective == pytest.approx(
        naive.best_by_prefixes(problem.to_dict()), rel=1e-9
    )


def hard() -> PromptChunkingProblem:
    """A problem whose labels are many: the device is about as fast as the cloud, and its chunks
    cost something.
    """
    return PromptChunkingProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": "prompt-chunking",
            "prompt_tokens": 351,
            "bytes_per_token": 10240.0,
            "uplink_bytes_per_second": 16.5e6,
            "downlink_bytes_per_second": 18.9e6,
            "cloud_delay": {"tokens": [35.0, 352.0, 819.0], "seconds": [0.025, 0.262, 0.272]},
            "background_tokens": 76.0,
            "pipeline_length": 6,
            "local_overhead_seconds": 0.0082,
            "local_seconds_per_token": 0.0011,
            "link_latency_seconds": 0.015,
            "wait": "overlap",
            "download": "last",
        }
    )


def test_too_many_labels() -> None:
    """Tests that a search that runs out of labels ends with a plan, a valid bound and an honest
    gap.
    """
    problem = hard()
    few = solve(problem, ExactChunking(max_labels=100))
    assert (few.status, few.termination) == ("feasible", "exhausted") and 0 < few.gap < 0.2
    coarse = dataclasses.replace(problem, grid_tokens=3)
    best = proven(coarse).objective
    assert few.bound <= best
    small = solve(coarse, ExactChunking(max_labels=100))
    assert small.bound <= best * (1 + 1e-12) <= small.objective * (1 + 2e-12)


def test_labels_move_to_larger_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a search gives the same whether its labels and its work are cut into pieces or
    not.
    """
    problem = dataclasses.replace(hard(), prompt_tokens=120)
    at_once = proven(problem)
    assert at_once.stats["labels"] > 1000
    monkeypatch.setattr("specopt.solvers.prompt_chunking.exact.FIRST_LABELS", 16)
    monkeypatch.setattr("specopt.solvers.prompt_chunking.exact.WORK", 5000)
    in_pieces = proven(problem)
    assert in_pieces.plan == at_once.plan
    assert in_pieces.bound == at_once.bound


def test_labels_are_copied_without_other_copies() -> None:
    """Tests that an array with more rows holds these rows and nothing else, as is declared."""
    labels = np.arange(30_000.0).reshape(-1, 3)
    tracemalloc.start()
    larger = enlarged(labels, 12_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert larger.shape == (12_000, 3) and not larger[10_000:].any()
    assert (larger[:10_000] == labels).all()
    assert peak < larger.nbytes + 10_000


def test_time_limit() -> None:
    """Tests that no time gives one chunk and a bound, and too little time what was reached."""
    none = solve(hard(), "exact", time_limit=0)
    assert none.termination == "time_limit" and none.bound > 0
    assert none.plan.chunks.tolist() == [351]
    problem = dataclasses.replace(hard(), prompt_tokens=2000)
    some = solve(problem, "exact", time_limit=0.3)
    assert some.termination == "time_limit"
    assert 0 < some.bound <= some.objective


def test_gap() -> None:
    """Tests that a search ends as soon as the gap asked for is reached."""
    result = solve(hard(), "exact", gap=0.1)
    assert result.termination == "gap"
    assert 1e-9 < result.gap <= 0.1


def test_callback_stops() -> None:
    """Tests that the caller sees bounds that only rise, plans that only improve, and can stop."""
    seen: list[Progress] = []

    def watch(progress: Progress) -> bool:
        seen.append(progress)
        return len(seen) == 12

    result = solve(hard(), "exact", callback=watch)
    assert result.termination == "interrupted"
    assert len(seen) == 12
    bounds = [p.bound for p in seen if p.bound is not None]
    plans = [p.objective for p in seen if p.objective is not None]
    assert bounds == sorted(bounds)
    assert plans == sorted(plans, reverse=True)
    assert result.objective == plans[-1]
    assert result.bound == hard().widened(bounds[-1])


def test_refusals() -> None:
    """Tests that too many boundaries are refused with a way out, and that a grid is one."""
    with pytest.raises(
        Unsupported, match=r"60,000 positions where a chunk may end, .*a larger grid_tokens"
    ):
        solve(setting(prompt_tokens=60_000), "exact")
    with pytest.raises(Unsupported, match="20,000,000 positions where a chunk may end times GPUs"):
        solve(setting(prompt_tokens=20_000, pipeline_length=1000), "exact")
    proven(dataclasses.replace(setting(prompt_tokens=60_000), grid_tokens=500))


def test_nothing_takes_time() -> None:
    """Tests that a problem where everything is free has the optimum 0."""
    free = {
        "bytes_per_token": 0.0,
        "message_overhead_seconds": 0.0,
        "cloud_delay": {"tokens": [0.0, 1.0], "seconds": [0.0, 0.0]},
    }
    problem = PromptChunkingProblem.from_dict(setting(prompt_tokens=20).to_dict() | free)
    assert proven(problem).objective == 0.0
