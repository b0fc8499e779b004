"""Predict serving latency pass by pass, as the testbed runs it, including effects that Eq. 17-22
omit.

The first draft pass of a round processes the token chosen by the verify model, and the last draft
if it was accepted. It then has two new tokens instead of one, which is a different pass on a
processor. The time of a pass is interpolated from the measurements by batch and new tokens. A batch
runs until its last task has its tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_latency.schedule import stage_seconds
from testbed.calibration import Passes
from testbed.explanation import pipeline_seconds

REPLICATIONS = 60


def pass_seconds(passes: Passes, batch: int, new: int) -> float:
    """Return the seconds of a pass over a cache, interpolated between the measurements and constant
    beyond them.
    """
    columns = ("phase", "batch", "new_tokens", "seconds_median")
    found: dict[int, dict[int, list[float]]] = {}
    for phase, size, tokens, seconds in zip(*(passes[name] for name in columns), strict=True):
        if phase != "prefill":
            found.setdefault(tokens, {}).setdefault(size, []).append(seconds)
    by_tokens = {
        tokens: np.interp(batch, sorted(sizes), [np.mean(sizes[size]) for size in sorted(sizes)])
        for tokens, sizes in sorted(found.items())
    }
    return float(np.interp(new, list(by_tokens), list(by_tokens.values())))


def steps_of(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, random: np.random.Generator
) -> list[int]:
    """Draw the number of steps of each batch, which is that of its slowest task. Each draft is
    accepted at the rate of the problem.
    """
    length, rate, found = plan.speculation_length, problem.common_rate or 0.0, []
    for batch in plan.batches:
        slowest = 0
        for wanted in problem.output_tokens[list(batch)].tolist():
            made = step = 0
            while made < wanted:
                step += 1
                made += 1
                for _ in range(length):
                    if random.random() >= rate:
                        break
                    made += 1
            slowest = max(slowest, step)
        found.append(slowest)
    return found


def predict_by_passes(
    problem: ServingLatencyProblem,
    plan: ServingLatencyPlan,
    draft: Passes,
    verify: Passes,
    seed: int = 0,
) -> float:
    """Return the mean total seconds of a plan over 60 samples of acceptances."""
    length, mechanism = plan.speculation_length, problem.mechanism_of(plan)
    first = [stage_seconds(problem, plan, batch, 1) for batch in plan.batches]
    later = [_round(draft, verify, len(batch), length) for batch in plan.batches]
    random = np.random.default_rng(seed)
    totals = []
    for _ in range(REPLICATIONS if length else 1):
        times = {
            (step, number): first[number] if step == 1 else later[number]
            for number, steps in enumerate(steps_of(problem, plan, random))
            for step in range(1, steps + 1)
        }
        totals.append(pipeline_seconds(times, mechanism))
    return float(problem.evaluate(plan).terms["communication_seconds"] + np.mean(totals))


def _round(draft: Passes, verify: Passes, batch: int, length: int) -> tuple[float, float]:
    """Return draft and verify seconds of a round after the first."""
    verified = pass_seconds(verify, batch, length + 1)
    if not length:
        return 0.0, verified
    news: Sequence[int] = (2, *[1] * (length - 1))
    return sum(pass_seconds(draft, batch, new) for new in news), verified
