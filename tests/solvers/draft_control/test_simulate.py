"""The simulator of draft control: against plain Python, against the judge, and its confidence
intervals.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import draft_control_simulation as naive

from specopt import DraftControlProblem, InvalidInput, generate, solve
from specopt.kinds.draft_control.strategies import problems as draft_controls
from specopt.models.draft_control.problem import DraftChoice, DraftControlPlan
from specopt.solvers.draft_control.policies import AdaptiveHeuristic, ServerAlone
from specopt.solvers.draft_control.simulate import simulate


def alternating(**parameters: Any) -> DraftControlProblem:
    """The counterexample's channel."""
    problem = generate("draft-control/alternating", **parameters)
    assert isinstance(problem, DraftControlProblem)
    return problem


def paper_3(**parameters: Any) -> DraftControlProblem:
    """The paper's setting."""
    problem = generate("draft-control/paper-3", **parameters)
    assert isinstance(problem, DraftControlProblem)
    return problem


def plan_of(*choices: tuple[int, int]) -> DraftControlPlan:
    """A plan of draft lengths and resolutions."""
    return DraftControlPlan(
        policy=tuple(
            DraftChoice(draft_length=length, resolution=value) for length, value in choices
        )
    )


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
    key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    bits = [problem.distribution_bits(state) for state in problem.states]
    visits, drafted = np.zeros(len(problem.states)), 0
    for replication in range(3):
        log = naive.play(
            problem.to_dict(),
            problem.stationary_distribution.tolist(),
            bits,
            lambda s, _d, _a: choices[s],
            key,
            replication,
            9,
        )[2:]
        assert found.samples_tokens[replication] == sum(accepted + 1 for _, _, accepted, _ in log)
        assert found.samples_seconds[replication] == pytest.approx(
            sum(seconds for *_, seconds in log), rel=1e-12
        )
        drafted += sum(drafts for _, drafts, _, _ in log)
        for state, *_ in log:
            visits[state] += 1
    assert found.drafted_tokens == drafted
    assert found.state_shares == pytest.approx(visits / 21)


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
    key = int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    bits = [problem.distribution_bits(state) for state in problem.states]
    for replication in range(2):
        log = naive.play(
            problem.to_dict(),
            problem.stationary_distribution.tolist(),
            bits,
            rule,
            key,
            replication,
            12,
        )
        assert found.samples_tokens[replication] == sum(accepted + 1 for _, _, accepted, _ in log)
        assert found.samples_seconds[replication] == pytest.approx(
            sum(seconds for *_, seconds in log), rel=1e-12
        )
    assert found.model is None and found.ratio is None


def test_responses_in_plain_python() -> None:
    """Tests that a response ends with the iteration that reaches its tokens, and that the mean is
    of ratios.
    """
    problem = alternating()
    plan = plan_of((2, 100), (9, 100))
    found = simulate(problem, plan, replications=20, iterations=1, response_tokens=30, seed=4)
    key = int(np.random.SeedSequence(4).generate_state(1, np.uint64)[0])
    bits = [problem.distribution_bits(state) for state in problem.states]
    ratios, lengths = [], []
    for replication in range(20):
        tokens, seconds = 0, 0.0
        log = naive.play(
            problem.to_dict(),
            [0.5, 0.5],
            bits,
            lambda s, _d, _a: ((2, 0), (9, 0))[s],
            key,
            replication,
            40,
        )
        for _, _, accepted, spent in log:
            tokens, seconds = tokens + accepted + 1, seconds + spent
            if tokens >= 30:
                break
        ratios.append(tokens / seconds)
        lengths.append(tokens)
    assert found.responses is not None
    assert found.responses.mean == pytest.approx(np.mean(ratios), rel=1e-12)
    assert found.mean_response_tokens == np.mean(lengths) >= 30 == found.response_tokens


@pytest.mark.parametrize(
    "problem", [paper_3(), paper_3(regime="high"), alternating()], ids=lambda one: one.name
)
def test_judge_lies_in_the_interval(problem: DraftControlProblem) -> None:
    """Tests that the analytic rate of the optimal policy lies inside a narrow 95 % interval."""
    plan = solve(problem).plan
    assert isinstance(plan, DraftControlPlan)
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
    problem = paper_3(low_to_high=0.02, high_to_low=0.01)
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
    found = simulate(alternating(), ServerAlone(), replications=3, iterations=10)
    assert found.mean == pytest.approx(10.0)
    assert found.mean_draft_tokens == found.estimates["accepted_tokens"].mean == 0
    assert found.policy == "llm-alone"
    assert simulate(alternating(), "llm-alone", replications=3).tokens == 3 * 1000


def test_mean_of_ratios_differs_from_the_rate() -> None:
    """Tests that the printed objective of Eq. 12 is above the long-run rate where iterations differ
    much.
    """
    problem = alternating()
    plan = plan_of((1, 100), (28, 100))
    found = simulate(problem, plan, replications=4000, response_tokens=10)
    assert found.responses is not None
    assert found.responses.confidence_interval[0] > 1.2 * found.mean
    long = simulate(problem, plan, replications=200, response_tokens=5000).responses
    assert long is not None
    assert long.mean == pytest.approx(45.168, rel=0.01)


def test_common_luck() -> None:
    """Tests that one seed gives every policy the same channel, and repeats itself whatever the
    chunks.
    """
    problem = paper_3()
    plan = plan_of(*((4, 100) for _ in problem.states))
    first = simulate(problem, plan, replications=50, iterations=50, seed=3)
    again = simulate(problem, plan, replications=100, iterations=50, seed=3)
    other = simulate(problem, "llm-alone", replications=50, iterations=50, seed=3)
    assert (first.samples_tokens == again.samples_tokens[:50]).all()
    assert (first.state_shares == other.state_shares).all()
    assert (
        simulate(problem, plan, replications=50, iterations=50, seed=4).samples_tokens
        != first.samples_tokens
    ).any()


def test_callback_and_json() -> None:
    """Tests that the callback sees the replications done, and that everything but the samples
    becomes JSON.
    """
    seen: list[int] = []
    found = simulate(
        paper_3(),
        "adaptive-heuristic",
        replications=5,
        iterations=1_500_000,
        warm_up=0,
        callback=lambda done, _rate: seen.append(done),
        response_tokens=8,
    )
    assert seen == [1, 2, 3, 4, 5]
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["kind"] == "draft-control" and data["policy"] == "adaptive-heuristic"
    assert data["quantiles"].keys() == {"0.05", "0.25", "0.5", "0.75", "0.95"}
    assert data["response_tokens"] == 8
    assert not any(name.startswith("samples") for name in data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"replications": 1}, "replications: expected an integer >= 2"),
        ({"iterations": 0}, "iterations: expected an integer >= 1"),
        ({"warm_up": -1}, "warm_up: expected an integer >= 0"),
        ({"seed": -1}, "seed: expected an integer >= 0"),
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
            r"policy: expected a feasible plan, but policy\[0\].draft_length",
        ),
        (
            {"policy": AdaptiveHeuristic(resolution=7)},
            r"policy.resolution: expected one of 100, got 7",
        ),
    ],
)
def test_bad_arguments(change: dict[str, Any], message: str) -> None:
    """Tests that bad arguments are named."""
    arguments: dict[str, Any] = {"policy": "llm-alone"} | change
    with pytest.raises(InvalidInput, match=message):
        simulate(alternating(), arguments.pop("policy"), **arguments)
