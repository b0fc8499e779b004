"""Explain the measured time of a plan of serving-latency: the difference from the prediction, term
by term.

The terms sum to the measured minus the predicted time. They are the extra time of the uploads, the
effect of numbers of steps that differ from Eq. 8, the effect of pass times that differ from the
fitted runtimes at the actual steps, and the time between passes for messages and bookkeeping. The
part of the third term that other work on the machine caused is reported separately, as the seconds
in which a process was not on its processor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.serving_data import Mechanism
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem
from specopt.models.serving_latency.schedule import stage_seconds


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Seconds by cause. `waiting` is a part of `passes`."""

    communication: float
    steps: float
    passes: float
    between: float
    waiting: float

    @property
    def total(self) -> float:
        """Measured minus predicted seconds."""
        return self.communication + self.steps + self.passes + self.between


def explain(
    problem: ServingLatencyProblem, plan: ServingLatencyPlan, measured: Mapping[str, Any]
) -> Terms:
    """Return the terms of one repetition of a trial."""
    predicted = problem.evaluate(plan)
    mechanism = problem.mechanism_of(plan)
    stages = {
        side: np.array(measured[side], dtype=np.float64).reshape(-1, 5)
        for side in ("draft", "verify")
    }
    steps: Sequence[int] = measured["steps"]
    modelled = {
        (step, number): stage_seconds(problem, plan, batch, step)
        for number, batch in enumerate(plan.batches)
        for step in range(1, steps[number] + 1)
    }
    real = dict.fromkeys(modelled, (0.0, 0.0))
    for step, batch, start, end, _ in stages["draft"]:
        real[int(step), int(batch)] = (end - start, 0.0)
    for step, batch, start, end, _ in stages["verify"]:
        real[int(step), int(batch)] = (real[int(step), int(batch)][0], end - start)
    with_steps, with_passes = (pipeline_seconds(times, mechanism) for times in (modelled, real))
    inference = measured["total_seconds"] - measured["communication_seconds"]
    return Terms(
        communication=measured["communication_seconds"] - predicted.terms["communication_seconds"],
        steps=with_steps - predicted.terms["inference_seconds"],
        passes=with_passes - with_steps,
        between=inference - with_passes,
        waiting=float(
            sum((rows[:, 3] - rows[:, 2] - rows[:, 4]).sum() for rows in stages.values())
        ),
    )


def undisturbed_seconds(measured: Mapping[str, Any], mechanism: Mechanism) -> float:
    """Return the seconds of a repetition if each process had always had its processor and messages
    took no time.

    These are the uploads, and the pipeline of the processor seconds of its stages.
    """
    busy: dict[tuple[int, int], list[float]] = {}
    for place, side in enumerate(("draft", "verify")):
        for step, batch, _, _, seconds in measured[side]:
            busy.setdefault((int(step), int(batch)), [0.0, 0.0])[place] = seconds
    times = {key: (draft, verify) for key, (draft, verify) in busy.items()}
    communication: float = measured["communication_seconds"]
    return communication + pipeline_seconds(times, mechanism)


def pipeline_seconds(
    times: Mapping[tuple[int, int], tuple[float, float]], mechanism: Mechanism
) -> float:
    """Return the seconds of all steps by Eq. 20-22, from draft and verify times by step and
    batch.
    """
    total = 0.0
    for step in sorted({step for step, _ in times}):
        drafted = done = 0.0
        for _, batch in sorted(key for key in times if key[0] == step):
            draft, verify = times[step, batch]
            drafted = (drafted if mechanism == "pipelined" else done) + draft
            done = max(drafted, done) + verify
        total += done
    return total
