"""Families made to be hard: each has the property that its name promises."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.families import problem_of

from specopt import (
    DraftAllocationProblem,
    DraftControlProblem,
    FairGoodputProblem,
    LinearRuntime,
    PromptChunkingProblem,
    ServingLatencyProblem,
    VerificationBatchProblem,
    generate,
    solve,
)


def test_serving_latency() -> None:
    """Tests that inputs are equal, memory is as asked, stages keep the ratio, links are weak and
    lengths mixed.
    """
    assert set(
        problem_of(ServingLatencyProblem, "equal-inputs", tokens=99).input_tokens.tolist()
    ) == {99}
    tight = problem_of(ServingLatencyProblem, "tight-memory", fit=2.0, seed=5)
    assert tight.draft is not None and tight.draft_memory_bytes is not None
    longest = int(tight.input_tokens.max()) + tight.longest_output
    room = tight.draft_memory_bytes - tight.draft.parameter_bytes
    assert 2 <= room / (longest * tight.draft.kv_bytes_per_token) < 2.1
    plain, slow = (
        problem_of(ServingLatencyProblem, "stage-ratio", factor=factor, seed=2)
        for factor in (1.0, 4.0)
    )
    assert (
        plain.sha256 == generate("serving-latency/paper-1", tasks=40, max_output=512, seed=2).sha256
    )
    assert isinstance(plain.draft_runtime, LinearRuntime)
    assert slow.draft_runtime == LinearRuntime(
        seconds_per_flop=4 * plain.draft_runtime.seconds_per_flop,
        overhead_seconds=4 * plain.draft_runtime.overhead_seconds,
    )
    link = problem_of(ServingLatencyProblem, "slow-link", seed=1)
    terms = solve(link).terms
    assert terms["communication_seconds"] > 10 * terms["inference_seconds"]
    inputs = problem_of(
        ServingLatencyProblem, "heavy-prefill", tasks=2000, max_input=4096
    ).input_tokens
    assert inputs.min() >= 8 and inputs.max() <= 4096
    assert np.log(inputs).mean() == pytest.approx((np.log(8) + np.log(4096)) / 2, abs=0.1)
    known = problem_of(
        ServingLatencyProblem, "known-lengths", tasks=5000, max_output=1000, long_share=0.25
    )
    assert known.output_lengths == "known"
    assert (known.output_tokens > 100).mean() == pytest.approx(0.25 * 0.9, abs=0.03)


def test_verification_batch() -> None:
    """Tests that deadlines are few, the first requests late, one long request just fits, and values
    follow costs.
    """
    assert (
        len(set(problem_of(VerificationBatchProblem, "bursty", bursts=4).deadline_seconds.tolist()))
        == 4
    )
    hopeless = problem_of(VerificationBatchProblem, "hopeless-urgent", hopeless=3)
    assert (hopeless.deadline_seconds < 0).tolist() == [True] * 3 + [False] * 97
    trap = problem_of(VerificationBatchProblem, "density-trap", requests=30, ratio=20.0)
    seconds = trap.estimator.weights(trap.new_tokens, trap.cached_tokens)
    density = trap.expected_tokens / seconds
    assert (density[:-1] > density[-1]).all()
    assert trap.expected_tokens[-1] > 19 * trap.expected_tokens[:-1].sum()
    assert solve(trap).plan.to_dict()["batch"] == [29]
    follows = problem_of(VerificationBatchProblem, "correlated", offset=0.0)
    seconds = follows.estimator.weights(follows.new_tokens, follows.cached_tokens)
    assert follows.expected_tokens == pytest.approx(100 * seconds)


def test_draft_control() -> None:
    """Tests that rates hardly differ, that a cycle visits its states in turn, and that halves are
    hardly left.
    """
    tie = problem_of(DraftControlProblem, "near-tie", spread=0.0)
    best, other = (solve(tie, method).objective for method in ("policy-iteration", "best-static"))
    assert best == pytest.approx(other, rel=1e-9)
    cycle = problem_of(DraftControlProblem, "deterministic-cycle", states=5)
    assert np.linalg.matrix_power(cycle.transition.rows, 5).tolist() == np.eye(5).tolist()
    uplinks = [state.uplink_bits_per_second for state in cycle.states]
    assert max(uplinks) == pytest.approx(200 * min(uplinks))
    slow = problem_of(DraftControlProblem, "slow-mixing", states=7, leave=1e-3).transition.rows
    assert slow[:3, 3:].sum(axis=1) == pytest.approx([1e-3] * 3)
    assert slow[3:, :3].sum(axis=1) == pytest.approx([1e-3] * 4)


def test_prompt_chunking() -> None:
    """Tests that messages cost, the stage is one, the cloud delay has steps, and the link is slow
    by the factor.
    """
    plain = problem_of(PromptChunkingProblem, "random", seed=3)
    assert problem_of(
        PromptChunkingProblem, "slow-message", seed=3
    ).message_overhead_seconds == pytest.approx(0.05)
    assert problem_of(PromptChunkingProblem, "single-stage").pipeline_length == 1
    cloud = problem_of(
        PromptChunkingProblem, "steep-cloud", step_tokens=100, step_milliseconds=20.0
    ).cloud_delay
    assert cloud.at(50) == cloud.at(100) == pytest.approx(cloud.at(101) - 0.02)
    assert cloud.at(101) == pytest.approx(cloud.at(200))
    slow = problem_of(PromptChunkingProblem, "slow-link", slowness=10.0, seed=3)
    assert slow.uplink_bytes_per_second == pytest.approx(plain.uplink_bytes_per_second / 10)
    assert slow.downlink_bytes_per_second == pytest.approx(1.1 * slow.uplink_bytes_per_second)


def test_draft_allocation() -> None:
    """Tests that marginal gains tie exactly, that one client gets most, and that limits go against
    acceptance.
    """
    ties = problem_of(DraftAllocationProblem, "ties", clients=6, groups=3)
    assert ties.weights.tolist() == [1.0, 2.0, 4.0, 1.0, 2.0, 4.0]
    one = problem_of(DraftAllocationProblem, "one-dominates", budget=500)
    drafts = solve(one).plan.to_dict()["draft_tokens"]
    assert drafts[0] > 400
    capped = problem_of(DraftAllocationProblem, "capped", clients=200, share=0.5)
    assert capped.max_draft_tokens is not None
    assert capped.budget_tokens == int(0.5 * capped.max_draft_tokens.sum())
    order = np.argsort(capped.acceptance_rates)
    assert (np.diff(capped.max_draft_tokens[order]) <= 0).all()


def test_fair_goodput() -> None:
    """Tests that promises can just be kept, and that weights and fairness are as asked."""
    assert (
        solve(problem_of(FairGoodputProblem, "minimum-rates", tightness=0.999, seed=4)).status
        == "optimal"
    )
    promised = problem_of(FairGoodputProblem, "minimum-rates", tightness=0.9, seed=4)
    assert promised.min_goodput is not None
    less = FairGoodputProblem.from_dict({**promised.to_dict(), "budget_tokens": int(0.9 * 20) - 1})
    assert solve(less).status == "infeasible"
    extreme = problem_of(
        FairGoodputProblem, "extreme-fairness", clients=500, weight_spread=50.0, cap=3
    )
    assert (
        extreme.fairness == 20.0
        and extreme.weights is not None
        and extreme.max_draft_tokens is not None
    )
    assert 1 <= extreme.weights.min() < 1.1 and 45 < extreme.weights.max() <= 50
    assert set(extreme.max_draft_tokens.tolist()) == {1, 2, 3}
