"""Requests of a trace as one `serving-latency` problem: their lengths, on the channel and models of a family."""

from __future__ import annotations

import dataclasses
from typing import Any

from specopt.instances.families import generate
from specopt.instances.traces.trace import Trace
from specopt.models.serving_latency import ServingLatencyProblem


def serving_latency(
    trace: Trace, family: str = "paper-1", *, seed: int = 0, **parameters: Any
) -> ServingLatencyProblem:
    """Return the problem of serving the requests of a trace together; when they arrived plays no part.

    Parameters
    ----------
    trace
        The requests, one task each.
    family
        Where the rest comes from: "paper-1". Signal-to-noise ratios are those of its own problem of as many tasks.
    seed
        Seed of the family.
    parameters
        Parameters of the family but tasks, max_input and max_output. O_max is the longest response of the trace.

    Raises
    ------
    InvalidInput
        If there is no such family or parameter, or a value is outside its domain.
    """
    drawn = generate(f"serving-latency/{family}", seed=seed, tasks=len(trace), **parameters)
    assert isinstance(drawn, ServingLatencyProblem)
    return dataclasses.replace(
        drawn,
        input_tokens=trace.input_tokens,
        output_tokens=trace.output_tokens,
        max_output_tokens=None,
    )
