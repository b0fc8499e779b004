"""Time and memory limits at the largest size of every field: the whole matrix is a benchmark, the hard cells are here.

Seconds are those of the processor, which a busy machine does not stretch; compilation is waited for once before.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import limits  # type: ignore[import-not-found]  # benchmarks are no package

LIMIT = 0.5

CELLS = [
    ("serving-latency", "output_tokens", "algorithm-1"),
    ("serving-latency", "output_tokens, known", "length-aware"),
    ("serving-latency", "max_speculation_length", "exact"),
    ("serving-latency", "max_speculation_length, rebatched", "rebatching"),
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


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "case", "method"), CELLS)
def test_limits_are_kept(kind: str, case: str, method: str) -> None:
    """Tests that a method that takes the largest case keeps the contract's time limit and 2 GiB."""
    cell = limits.measure(kind, case, method, LIMIT, "process_time")
    assert cell.kept(LIMIT), cell
    assert not cell.outcome.startswith("refused"), cell


@pytest.mark.slow
def test_what_cannot_be_held_is_refused() -> None:
    """Tests that ten million stages for every chunk are refused at once, with the field and the bytes."""
    cell = limits.measure("prompt-chunking", "pipeline_length", "deadline", LIMIT, "process_time")
    assert "pipeline_length need" in cell.outcome and "bytes of memory" in cell.outcome
    assert cell.kept(LIMIT)
