"""Plans of serving-latency carried out by two processes with the tiny pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from specopt.models.continuous_serving.problem import (
    ContinuousServingPlan,
    ContinuousServingProblem,
    Phase,
)
from specopt.models.pass_time import LinearRuntime
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from testbed.decoding import Sampling
from testbed.plays.serving_latency import Run, play
from testbed.processes import Laboratory

TASKS, SIZE = 6, 61
RNG = np.random.default_rng(0)
PROMPTS = [RNG.integers(SIZE, size=size).tolist() for size in RNG.integers(4, 20, size=TASKS)]
OUTPUTS = RNG.integers(6, 16, size=TASKS)


@pytest.fixture(scope="module")
def laboratory() -> Iterator[Laboratory]:
    """Both processes."""
    with Laboratory("tiny") as found:
        yield found


def problem(laboratory: Laboratory) -> ServingLatencyProblem:
    """Return a problem of six tasks."""
    runtime = LinearRuntime(seconds_per_flop=1e-9, overhead_seconds=1e-3)
    return ServingLatencyProblem(
        input_tokens=np.array([len(prompt) for prompt in PROMPTS]),
        output_tokens=OUTPUTS,
        snr=np.linspace(2.0, 4.0, TASKS),
        bandwidth_hz=2e5,
        draft=laboratory.draft.config.exact,
        verify=laboratory.verify.config.exact,
        draft_runtime=runtime,
        verify_runtime=runtime,
        draft_memory_bytes=1e9,
        acceptance_rate=0.4,
        max_speculation_length=5,
        output_lengths="known",
        mechanism="any",
    )


@pytest.mark.parametrize(
    ("mechanism", "length"),
    [("pipelined", 1), ("pipelined", 4), ("sequential", 2), ("autoregressive", 0)],
)
@pytest.mark.parametrize(
    "batches", [((0, 1, 2), (3, 5), (4,)), ((2, 5, 0, 1, 3, 4),), ((4,), (3,), (2,), (0, 1, 5))]
)
def test_output_is_what_the_verify_model_decodes_alone(
    laboratory: Laboratory, mechanism: str, length: int, batches: tuple[tuple[int, ...], ...]
) -> None:
    """Tests that at temperature 0 every mechanism gives the greedy output of the verify model,
    token by token.
    """
    plan = ServingLatencyPlan(
        speculation_length=length,
        batches=batches,
        bandwidth_share=np.full(TASKS, 1 / TASKS),
        mechanism=mechanism,  # type: ignore[arg-type]
    )
    run = play(laboratory, problem(laboratory), plan, PROMPTS, Sampling())
    for prompt, count, output in zip(PROMPTS, OUTPUTS, run.outputs, strict=True):
        assert output == laboratory.verify.greedy(prompt, int(count))[0]
    _check_times(run, problem(laboratory), plan)
    if mechanism == "autoregressive":
        assert run.steps == [max(OUTPUTS[list(batch)]) for batch in batches]
        assert (run.accepted, run.drafted) == (0, 0)
    else:
        assert 0 < run.accepted < run.drafted


def _check_times(run: Run, problem: Any, plan: Any) -> None:
    """Check the properties that stages must have on any machine."""
    expected = problem.evaluate(plan).terms["communication_seconds"]
    assert expected <= run.communication_seconds <= expected + 0.1
    for stages in (run.draft, run.verify):
        if len(stages):
            assert (stages[1:, 2] >= stages[:-1, 3]).all()  # one core does one thing at a time
            assert (stages[:, 3] >= stages[:, 2]).all()
            assert (stages[:, 4] > 0.0).all()
            assert stages[0, 2] >= run.communication_seconds
    ends = {(step, batch): end for step, batch, _, end, _ in run.draft}
    for step, batch, start, *_ in run.verify:
        assert start >= ends.get((step, batch), 0.0)
    for step, _, start, *_ in run.draft:
        before = run.verify[run.verify[:, 0] < step]
        assert start >= before[:, 3].max(initial=0.0)  # steps never overlap
    assert run.seconds >= run.verify[:, 3].max()
    assert (run.first_token_seconds <= run.seconds).all()
    assert (run.first_token_seconds > run.communication_seconds).all()


def test_sampled_outputs_hang_on_the_seed_alone(laboratory: Laboratory) -> None:
    """Tests that at temperature 1 the output depends on the seed but not on the batches."""
    given = problem(laboratory)
    shares = np.full(TASKS, 1 / TASKS)
    plans = [
        ServingLatencyPlan(
            speculation_length=3, batches=batches, bandwidth_share=shares, mechanism="pipelined"
        )
        for batches in (((0, 1, 2), (3, 4, 5)), ((5, 0), (4, 2, 3, 1)))
    ]
    found = [
        play(laboratory, given, plan, PROMPTS, Sampling(temperature=1.0, seed=7)).outputs
        for plan in plans
    ]
    assert found[0] == found[1]
    assert (
        play(laboratory, given, plans[0], PROMPTS, Sampling(temperature=1.0, seed=8)).outputs
        != found[0]
    )


def test_tasks_change_their_batches(laboratory: Laboratory) -> None:
    """Tests that a plan of phases with drafts of different lengths gives the greedy output, without
    finished tasks.
    """
    given = ContinuousServingProblem(**problem(laboratory).shared_fields())
    phases = (
        Phase(first_step=1, batches=((0, 1, 2), (3, 5), (4,)), speculation_length=(2, 1, 3)),
        Phase(first_step=3, batches=((5, 0), (1, 4), (2, 3))),
        Phase(first_step=4, batches=((3, 1, 0, 2, 5, 4),)),
    )
    shares = np.full(TASKS, 1 / TASKS)
    plan = ContinuousServingPlan(
        speculation_length=2, phases=phases, bandwidth_share=shares, mechanism="pipelined"
    )
    run = play(laboratory, given, plan, PROMPTS, Sampling())
    for prompt, count, output in zip(PROMPTS, OUTPUTS, run.outputs, strict=True):
        assert output == laboratory.verify.greedy(prompt, int(count))[0]
    _check_times(run, given, plan)
    assert [sorted(run.verify[run.verify[:, 0] == step, 1]) for step in (1, 3, 4)] == [
        [0, 1, 2],
        [0, 1, 2],
        [0],
    ]
    assert run.steps[0] == run.verify[-1, 0] and 0 < run.accepted < run.drafted
