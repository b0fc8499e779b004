"""Serving latency predicted pass by pass, as the testbed runs it; what Eq. 17-22 leave out of it is in here.

A round's first draft pass takes in the token that the verify model chose, and the last draft where that was accepted:
two new tokens, not one, which is another pass on a processor. Passes take what was measured at their batch and new
tokens, interpolated. A batch goes on until its last task has its tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from specopt.models.fields import Ints
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_schedule import stage_seconds, steps_per_batch
from testbed.calibration import Passes
from testbed.explanation import pipeline_seconds

REPLICATIONS = 60


def pass_seconds(passes: Passes, batch: int, new: int) -> float:
    """Return the seconds of a pass over a cache, between those measured; beyond them, as at the end."""
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


def steps_of(problem: ServingLatencyProblem, plan: ServingLatencyPlan, random: np.random.Generator) -> list[int]:
    """Draw the steps of each batch: those of its slowest task, each draft accepted with the problem's rate."""
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
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, draft: Passes, verify: Passes, seed: int = 0
) -> float:
    """Return the mean total seconds of a plan over random acceptances, 60 of them."""
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


def expected_slowest(rate: float, length: int, wanted: Ints) -> float:
    """Return the expected largest number of rounds of independent tasks, exactly.

    Parameters
    ----------
    rate
        Of each draft's acceptance.
    length
        Drafts of a round.
    wanted
        Tokens of each task.
    """
    of_a_round = np.concatenate([[0.0], (1.0 - rate) * rate ** np.arange(length), [rate**length]])
    most, slowest = int(wanted.max()), 0.0
    made = np.zeros(most + 1)
    made[0] = 1.0  # by tokens so far; the last entry is all that suffices for every task
    for _ in range(most):  # a round makes a token at least
        slowest += 1.0 - float(np.prod([made[tokens:].sum() for tokens in wanted.tolist()]))
        further = np.convolve(made, of_a_round)
        made = np.append(further[:most], further[most:].sum())
    return slowest


def predict_by_form(
    problem: ServingLatencyProblem,
    plan: ServingLatencyPlan,
    passes: tuple[Passes, Passes] | None,
    *,
    slowest: bool,
) -> float:
    """Return the total seconds of a plan: Eq. 17-22 with another number of rounds, other pass times, or both.

    Parameters
    ----------
    problem, plan
        What is predicted.
    passes
        Measured passes of draft and verify model, which take the place of the fitted runtimes behind the first round;
        None: the runtimes.
    slowest
        Whether a batch has the expected rounds of its slowest task, the last one by its fraction, or those of Eq. 8.
    """
    length, rounds = plan.speculation_length, [float(one) for one in steps_per_batch(problem, plan)]
    if slowest:
        rate = problem.common_rate or 0.0
        rounds = [expected_slowest(rate, length, problem.output_tokens[list(batch)]) for batch in plan.batches]
    times = {}
    for number, batch in enumerate(plan.batches):
        for step in range(1, math.ceil(rounds[number]) + 1):
            if passes is None or step == 1:
                draft, verify = stage_seconds(problem, plan, batch, step)
            else:
                draft = length * pass_seconds(passes[0], len(batch), 1)
                verify = pass_seconds(passes[1], len(batch), length + 1)
            part = min(1.0, rounds[number] - (step - 1))
            times[step, number] = part * draft, part * verify
    uploads = float(problem.evaluate(plan).terms["communication_seconds"])
    return uploads + pipeline_seconds(times, problem.mechanism_of(plan))


def _round(draft: Passes, verify: Passes, batch: int, length: int) -> tuple[float, float]:
    """Return draft and verify seconds of a round behind the first."""
    verified = pass_seconds(verify, batch, length + 1)
    if not length:
        return 0.0, verified
    news: Sequence[int] = (2, *[1] * (length - 1))
    return sum(pass_seconds(draft, batch, new) for new in news), verified
