"""The simulator of draft control: against plain Python, against the judge, and its confidence
intervals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.untyped import generate, solve
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import draft_control_simulation as naive
from oracles.random_numbers import key_of

from specopt import DraftControlProblem, InvalidInput
from specopt.kinds.draft_control.strategies import problems as draft_controls
from specopt.models.draft_control.problem import DraftChoice, DraftControlPlan
from specopt.solvers.draft_control.policies import AdaptiveHeuristic, ServerAlone
from specopt.solvers.draft_control.simulate import RateSimulation, simulate

ALTERNATING = generate("draft-control/alternating")
PAPER_3 = generate("draft-control/paper-3")


def plan_of(*choices: tuple[int, int]) -> DraftControlPlan:
    """A plan of draft lengths and resolutions."""
    return DraftControlPlan(
        policy=tuple(
            DraftChoice(draft_length=length, resolution=value) for length, value in choices
        )
    )


def logs(
    problem: DraftControlProblem, choose: Any, seed: int, runs: int, iterations: int
) -> list[list[tuple[int, int, int, float]]]:
    """The logs of a rule or policy in plain Python."""
    shares = problem.stationary_distribution.tolist()
    bits = [problem.distribution_bits(state) for state in problem.states]
    return [
        naive.play(problem.to_dict(), shares, bits, choose, key_of(seed), run, iterations)
        for run in range(runs)
    ]


def check(found: RateSimulation, played: list[list[tuple[int, int, int, float]]]) -> None:
    """Compare tokens, seconds, drafts and visits with those of logs."""
    for run, log in enumerate(played):
        assert found.samples_tokens[run] == sum(accepted + 1 for _, _, accepted, _ in log)
        assert found.samples_seconds[run] == pytest.approx(
            sum(seconds for *_, seconds in log), rel=1e-12
        )
    every = [step for log in played for step in log]
    assert found.drafted_tokens == sum(drafts for _, drafts, _, _ in every)
    visits = np.bincount([state for state, *_ in every], minlength=len(found.state_shares))
    assert found.state_shares == pytest.approx(visits / len(every))


@given(draft_controls(), st.data())
@settings(max_examples=40)
def test_plan_played_in_plain_python(problem: DraftControlProblem, data: st.DataObject) -> None:
    """Tests that the kernel and plain Python, given one luck, agree on tokens, seconds, drafts and
    visits.
    """
    low, high = problem.draft_lengths
    values = problem.resolutions.tolist()
    choices = [
        (data.draw(st.integers(low, high)), data.draw(st.integers(0, len(values) - 1)))
        for _ in problem.states
    ]
    plan = plan_of(*((length, values[index]) for length, index in choices))
    seed = data.draw(st.integers(0, 5))
    found = simulate(problem, plan, replications=3, iterations=7, warm_up=2, seed=seed)
    check(found, [log[2:] for log in logs(problem, lambda s, _d, _a: choices[s], seed, 3, 9)])


@given(draft_controls(longest=6), st.integers(0, 8), st.integers(0, 5))
@settings(max_examples=40)
def test_heuristic_played_in_plain_python(
    problem: DraftControlProblem, first: int, seed: int
) -> None:
    """Tests that the adaptive heuristic follows the paper's rule within the allowed lengths, in
    both routes.
    """
    low, high = problem.draft_lengths
    resolution = problem.resolutions.tolist()[-1]

    def rule(_state: int, drafted: int, accepted: int) -> tuple[int, int]:
        wanted = first if drafted < 0 else drafted + 1 if accepted == drafted else max(1, accepted)
        return sorted((low, wanted, high))[1], len(problem.resolutions) - 1

    policy = AdaptiveHeuristic(first_length=first, resolution=resolution)
    found = simulate(problem, policy, replications=2, iterations=12, warm_up=0, seed=seed)
    check(found, logs(problem, rule, seed, 2, 12))
    assert found.model is None and found.ratio is None


def test_responses_in_plain_python() -> None:
    """Tests that a response ends with the iteration that reaches its tokens, and that the mean is
    of ratios.
    """
    problem: DraftControlProblem = ALTERNATING
    plan = plan_of((2, 100), (9, 100))
    found = simulate(problem, plan, replications=20, iterations=1, response_tokens=30, seed=4)
    ratios, lengths = [], []
    for log in logs(problem, lambda s, _d, _a: ((2, 0), (9, 0))[s], 4, 20, 40):
        tokens, seconds = 0, 0.0
        for _, _, accepted, spent in log:
            tokens, seconds = tokens + accepted + 1, seconds + spent
            if tokens >= 30:
                break
        ratios.append(tokens / seconds)
        lengths.append(tokens)
    assert found.responses is not None
    assert found.responses.mean == pytest.approx(np.mean(ratios), rel=1e-12)
    assert found.mean_response_tokens == np.mean(lengths) >= 30 == found.response_tokens
    assert not any(name.startswith("samples") for name in found.to_dict())


@pytest.mark.parametrize(
    "problem",
    [PAPER_3, generate("draft-control/paper-3", regime="high"), ALTERNATING],
    ids=lambda one: one.name,
)
def test_judge_lies_in_the_interval(problem: DraftControlProblem) -> None:
    """Tests that the analytic rate of the optimal policy lies inside a narrow 95 % interval."""
    plan = solve(problem).plan
    found = simulate(problem, plan, replications=400, seed=1)
    low, high = found.confidence_interval
    assert found.model == problem.evaluate(plan).objective
    assert low < found.model < high
    assert high - low < 0.02 * found.model


@pytest.mark.parametrize("iterations", [1, 30])
def test_coverage_of_the_interval(iterations: int) -> None:
    """Tests that about 95 % of many intervals contain the analytic rate, on a chain that changes
    state rarely.
    """
    problem = generate("draft-control/paper-3", low_to_high=0.02, high_to_low=0.01)
    plan = plan_of(*((length, 100) for length in (2, 1, 3, 8, 12, 5)))
    rate = problem.evaluate(plan).objective
    inside = 0
    for seed in range(600):
        low, high = simulate(
            problem, plan, replications=120, iterations=iterations, warm_up=0, seed=seed
        ).confidence_interval
        inside += low <= rate <= high
    assert 0.92 <= inside / 600 <= 0.975


def test_server_alone() -> None:
    """Tests that the server alone makes one token per verification, also where drafts are
    compulsory.
    """
    found = simulate(ALTERNATING, ServerAlone(), replications=3, iterations=10)
    assert found.mean == pytest.approx(10.0)
    assert found.mean_draft_tokens == found.estimates["accepted_tokens"].mean == 0
    assert found.policy == "llm-alone"
    assert simulate(ALTERNATING, "llm-alone", replications=3).tokens == 3 * 1000


def test_common_channel() -> None:
    """Tests that one seed gives every policy the same channel."""
    plan = plan_of(*((4, 100) for _ in PAPER_3.states))
    one, other = (
        simulate(PAPER_3, policy, replications=50, iterations=50, seed=3)
        for policy in (plan, "llm-alone")
    )
    assert (one.state_shares == other.state_shares).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replications": 1}, "replications: expected an integer >= 2"),
        ({"iterations": 0}, "iterations: expected an integer >= 1"),
        ({"warm_up": -1}, "warm_up: expected an integer >= 0"),
        ({"response_tokens": 0}, "response_tokens: expected an integer >= 1"),
        (
            {"policy": "greedy"},
            (
                "policy: expected one of adaptive-heuristic, llm-alone, DraftControlPlan, .*got"
                " 'greedy'"
            ),
        ),
        ({"policy": 3}, "policy: expected one of adaptive-heuristic, llm-alone, DraftControlPlan"),
        (
            {"policy": plan_of((40, 100), (1, 100))},
            r"policy: the plan is not feasible: policy\[0\].draft_length",
        ),
        (
            {"policy": AdaptiveHeuristic(resolution=7)},
            r"policy.resolution: expected 100, got 7",
        ),
    ],
)
def test_bad_arguments(change: dict[str, Any], message: str) -> None:
    """Tests that bad arguments are named."""
    arguments: dict[str, Any] = {"policy": "llm-alone"} | change
    with pytest.raises(InvalidInput, match=message):
        simulate(ALTERNATING, arguments.pop("policy"), **arguments)
