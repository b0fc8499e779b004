"""Time and memory limits at the largest size of every field: the whole matrix is a benchmark, the
hard cells are here.

Seconds are those of the processor, which a busy machine does not stretch; compilation is waited for
once before.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specopt import Problem, ServingLatencyProblem, Unsupported, generate, solve
from specopt.models.fields import MAX_TOKENS
from specopt.solvers.serving_latency.baselines import NoBatching

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import limits  # type: ignore[import-not-found]  # benchmarks are no package

LIMIT = 0.5

CELLS = [
    ("serving-latency", "output_tokens", "algorithm-1"),
    ("serving-latency", "output_tokens, known", "length-aware"),
    ("serving-latency", "max_speculation_length", "exact"),
    ("continuous-serving", "max_speculation_length", "rebatching"),
    ("serving-latency", "tasks", "algorithm-1"),
    ("prompt-chunking", "pipeline_length", "equation-3"),
    ("prompt-chunking", "pipeline_length", "geometric"),
    ("prompt-chunking", "pipeline_length 10,000", "deadline"),
    ("prompt-chunking", "prompt_tokens", "deadline"),
    ("draft-control", "states", "policy-iteration"),
    ("draft-control", "draft_lengths", "policy-iteration"),
    ("verification-batch", "requests", "threshold"),
    ("draft-allocation", "clients", "water-level"),
    ("fair-goodput", "clients", "dual"),
    ("fair-goodput", "clients", "random"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "case", "method"), CELLS)
def test_limits_are_kept(kind: str, case: str, method: str) -> None:
    """Tests that a method that takes the largest case keeps the contract's time limit and 2 GiB."""
    cell = limits.measure(kind, case, method, LIMIT, "process_time")
    assert cell.kept(LIMIT), cell
    assert not cell.outcome.startswith("refused"), cell


@pytest.mark.nightly
def test_what_cannot_be_held_is_refused() -> None:
    """Tests that ten million stages for every chunk are refused at once, with the field and the
    bytes.
    """
    cell = limits.measure("prompt-chunking", "pipeline_length", "deadline", LIMIT, "process_time")
    assert "pipeline_length need" in cell.outcome and "bytes of memory" in cell.outcome
    assert cell.kept(LIMIT)


def _long(kind: str, tasks: int) -> Problem:
    """Tasks whose outputs are as long as the format allows."""
    problem = generate(f"{kind}/paper-1", tasks=tasks, seed=1)
    outputs = [MAX_TOKENS] * tasks
    changes = {
        "output_tokens": outputs,
        "max_output_tokens": MAX_TOKENS,
        "draft_memory_bytes": 1e15,
    }
    return type(problem).from_dict(problem.to_dict() | changes)


@pytest.mark.parametrize(
    ("kind", "tasks", "method"),
    [
        ("continuous-serving", 1000, "rebatching"),
        ("continuous-serving", 1000, "auto"),
        ("serving-latency", 1000, "no-batching"),
        ("serving-latency", 100_000, "auto"),
    ],
)
def test_what_cannot_end_in_time_is_refused(kind: str, tasks: int, method: str) -> None:
    """Tests that plans that take long to judge are refused where a limit is given, with what they
    take.
    """
    said = (
        rf"method {method} cannot honor time_limit 1: tasks times decoding steps take about .*"
        r" seconds"
    )
    with pytest.raises(Unsupported, match=said):
        solve(_long(kind, tasks), method, time_limit=1.0)


def test_what_takes_long_is_run_without_a_limit(
    small: ServingLatencyProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a method that takes long warns and runs without a limit, and runs within one that
    it can keep.
    """
    monkeypatch.setattr(
        NoBatching, "seconds_needed", lambda self, problem: {"tasks": 500.0, "rest": 1.0}
    )
    with pytest.warns(UserWarning, match=r"method no-batching: tasks take about 5e\+02 seconds"):
        assert solve(small, "no-batching").plan is not None
    assert solve(small, "no-batching", time_limit=500.0).plan is not None
    with pytest.raises(Unsupported, match=r"cannot honor time_limit 490"):
        solve(small, "no-batching", time_limit=490.0)
