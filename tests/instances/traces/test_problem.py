"""Requests of a trace as problems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.families import problem_of

from specopt import (
    ContinuousServingProblem,
    InvalidInput,
    ServingLatencyProblem,
    VerificationBatchProblem,
    solve,
)
from specopt.api.generate import from_trace
from specopt.instances.traces import Trace
from specopt.instances.verification_batch.pending import (
    AMPLE_BYTES,
    KV_BYTES_PER_TOKEN,
    with_contexts,
)

TRACE = Trace(
    arrival_seconds=[0.0, 0.5, 0.5, 2.0, 3.0, 9.0],  # type: ignore[arg-type]
    input_tokens=[100, 900, 20, 300, 5000, 1],  # type: ignore[arg-type]
    output_tokens=[5, 80, 200, 1, 33, 12],  # type: ignore[arg-type]
    source="day.csv",
    start=40,
    dropped=(("0 output tokens", 3),),
)


def serving(seed: int = 0, **parameters: Any) -> ServingLatencyProblem:
    """The trace as tasks."""
    found = from_trace("serving-latency").problem(TRACE, seed=seed, **parameters)
    assert isinstance(found, ServingLatencyProblem)
    return found


def verification(
    family: str | None = None, seed: int = 0, **parameters: Any
) -> VerificationBatchProblem:
    """The trace as pending requests."""
    found = from_trace("verification-batch").problem(TRACE, family, seed=seed, **parameters)
    assert isinstance(found, VerificationBatchProblem)
    return found


def test_serving_latency() -> None:
    """Tests that lengths are the trace's, and the channel and all else those of the family with
    that seed.
    """
    found = serving(seed=7, pair="68M-7B", bandwidth=5e6)
    drawn = problem_of(
        ServingLatencyProblem, "paper-1", tasks=6, seed=7, pair="68M-7B", bandwidth=5e6
    )
    assert found.input_tokens.tolist() == TRACE.input_tokens.tolist()
    assert found.output_tokens.tolist() == TRACE.output_tokens.tolist()
    assert found.snr.tolist() == drawn.snr.tolist()
    assert found.longest_output == 200
    changed = ("input_tokens", "output_tokens", "max_output_tokens", "name", "notes")
    left, right = (
        {k: v for k, v in p.to_dict().items() if k not in changed} for p in (found, drawn)
    )
    assert left == right
    assert serving(seed=7) == serving(seed=7) != serving(seed=8)


def test_arrivals_are_stretched_to_a_rate() -> None:
    """Tests that a family with arrivals takes the trace's, at the mean rate that is asked for."""
    found = from_trace("continuous-serving").problem(
        TRACE, "arrivals", requests_per_second=5.0, seed=7
    )
    assert isinstance(found, ContinuousServingProblem) and found.arrival_seconds is not None
    assert found.arrival_seconds.tolist() == pytest.approx((TRACE.arrival_seconds / 9.0).tolist())
    assert found.output_tokens.tolist() == TRACE.output_tokens.tolist()


def test_provenance() -> None:
    """Tests that notes and name say which rows of which file a problem is, and what was dropped."""
    found = serving(seed=7)
    assert (
        found.notes == "Rows 40 to 45 of day.csv, 3 with 0 output tokens dropped; other values from"
        " serving-latency/paper-1, seed 7."
    )
    assert found.name == "day.csv 40-45 paper-1 seed=7"
    assert verification("warm").name == "day.csv 40-45 warm seed=0"


@pytest.mark.parametrize("family", ["warm", "mixed", "tight", "memory-bound"])
def test_verification_batch(family: str) -> None:
    """Tests that contexts are the trace's prompts, cached or to be computed, and all else is the
    family's.
    """
    found = verification(family, seed=3)
    drawn = problem_of(VerificationBatchProblem, family, requests=6, seed=3)
    cold = drawn.cached_tokens == 0
    assert found.cached_tokens.tolist() == np.where(cold, 0, TRACE.input_tokens).tolist()
    drafted = found.new_tokens - np.where(cold, TRACE.input_tokens, 0) - 1
    assert drafted.min() >= 1 and drafted.max() <= 8
    assert (drafted + 1)[~cold].tolist() == drawn.new_tokens[~cold].tolist()
    assert (
        found.request_memory_bytes.tolist()
        == ((TRACE.input_tokens + drafted + 1) * KV_BYTES_PER_TOKEN).tolist()
    )
    assert found.expected_tokens.tolist() == drawn.expected_tokens.tolist()
    assert found.deadline_seconds.tolist() == drawn.deadline_seconds.tolist()
    if family == "memory-bound":
        assert found.memory_bytes == pytest.approx(0.15 * found.request_memory_bytes.sum())
    else:
        assert found.memory_bytes == AMPLE_BYTES


@pytest.mark.parametrize("family", ["mixed", "memory-bound"])
def test_the_drawn_contexts_give_the_drawn_problem(family: str) -> None:
    """Tests that putting a family's own contexts in changes nothing: drafts are those that were
    drawn.
    """
    drawn = problem_of(VerificationBatchProblem, family, requests=50, seed=3)
    totals = np.rint(drawn.request_memory_bytes / KV_BYTES_PER_TOKEN).astype(np.int64)
    rng = np.random.default_rng(3)
    contexts = totals - rng.integers(1, 8, size=50, endpoint=True) - 1
    again = with_contexts(drawn, contexts, seed=3)
    assert again.memory_bytes == pytest.approx(drawn.memory_bytes)
    assert again.new_tokens.tolist() == drawn.new_tokens.tolist()
    assert again.cached_tokens.tolist() == drawn.cached_tokens.tolist()
    with pytest.raises(
        InvalidInput, match="contexts: expected 50 lengths, one per request, got 49"
    ):
        with_contexts(drawn, contexts[1:], seed=3)


def test_problems_are_solved() -> None:
    """Tests that both kinds are solved to optimality."""
    assert solve(serving()).status == "optimal"
    assert solve(verification("mixed")).status == "optimal"


@pytest.mark.parametrize(
    ("kind", "family", "parameters", "message"),
    [
        (
            "fair-goodput",
            None,
            {},
            (
                "kind: expected one of serving-latency, continuous-serving, verification-batch, got"
                " 'fair-goodput'"
            ),
        ),
        (
            "serving-latency",
            "mixed",
            {},
            "family: expected paper-1 for serving-latency, got 'mixed'",
        ),
        (
            "verification-batch",
            "serving-latency/paper-1",
            {},
            "family: expected one of mixed, warm, tight, memory-bou",
        ),
        ("serving-latency", None, {"tasks": 3}, "tasks: the value comes from the trace"),
        ("verification-batch", None, {"requests": 3}, "requests: the value comes from the trace"),
        ("serving-latency", None, {"alpha": 2.0}, "alpha"),
        (
            "serving-latency",
            None,
            {"colour": 2.0},
            "colour: serving-latency/paper-1 has no such parameter",
        ),
    ],
)
def test_bad_requests(
    kind: str, family: str | None, parameters: dict[str, Any], message: str
) -> None:
    """Tests that kinds, families and parameters that do not exist are refused by name."""
    with pytest.raises(InvalidInput, match=message):
        from_trace(kind).problem(TRACE, family, **parameters)


def test_families_by_their_full_name() -> None:
    """Tests that KIND/FAMILY names a family, too."""
    assert verification("verification-batch/tight") == verification("tight")
