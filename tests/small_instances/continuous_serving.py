"""Small instances of `continuous-serving` for the conformance suite."""

from __future__ import annotations

import dataclasses

import numpy as np

from specopt import ContinuousServingProblem, Problem, generate


def _instances() -> dict[str, Problem]:
    """Small instances of `continuous-serving`: both objectives, pauses, arrivals, samples, no
    memory.
    """
    family = "continuous-serving/paper-1"
    base = generate(family, tasks=5, max_input=40, max_output=24, seed=1)
    assert isinstance(base, ContinuousServingProblem)
    assert base.draft is not None
    tokens = int(base.input_tokens.max()) + base.longest_output
    parameters, kv = base.draft.parameter_bytes, base.draft.kv_bytes_per_token
    few = generate(family, tasks=3, max_input=40, max_output=4, seed=4).to_dict() | {
        "output_lengths": "known",
        "max_speculation_length": 2,
    }
    return {
        "base": ContinuousServingProblem.from_dict(few | {"mechanism": "any"}),
        "one length": ContinuousServingProblem.from_dict(
            few
            | {"max_speculation_length": 1, "regroup_seconds": 0.01, "objective": "mean_latency"}
        ),
        "rates of every task": ContinuousServingProblem.from_dict(
            few | {"acceptance_rate": [0.9, 0.5, 0.7]}
        ),
        "steps without drafts": ContinuousServingProblem.from_dict(
            few | {"min_speculation_length": 0}
        ),
        "arrivals": dataclasses.replace(
            base, output_lengths="known", arrival_seconds=np.array([0.0, 0.1, 0.1, 2.0, 40.0])
        ),
        "predicted": ContinuousServingProblem.from_dict(
            base.to_dict()
            | {
                "output_lengths": "predicted",
                "output_samples": [[3, 9, 24, 1, 7], [5, 5, 20, 2, 7]],
            }
        ),
        "infeasible": dataclasses.replace(
            base, draft_memory_bytes=float(parameters + kv * tokens - 100)
        ),
    }


INSTANCES = _instances()
