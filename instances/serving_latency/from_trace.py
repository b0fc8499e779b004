"""Conversion of a trace into a `serving-latency` problem.

The request lengths come from the trace, and the channel and the models come from a family.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from specopt.instances.family import Family, labelled
from specopt.instances.serving_latency import FAMILIES
from specopt.instances.traces.problem import FromTrace
from specopt.instances.traces.trace import Trace
from specopt.models.serving_latency.problem import ServingLatencyProblem


def serving_latency(
    trace: Trace, family: Family, *, seed: int = 0, **parameters: Any
) -> ServingLatencyProblem:
    """Return the problem in which all requests of a trace are served together.

    Parameters
    ----------
    trace
        Trace whose requests become the tasks.
    family
        Family that supplies all other fields. The signal-to-noise ratios are those of the family's
        problem with the same number of tasks.
    seed
        Seed of the family.
    parameters
        Parameters of the family other than tasks, max_input and max_output. The maximum output
        length O_max is the length of the longest response in the trace.

    Raises
    ------
    InvalidInput
        If the family has no such parameter, or if a value is outside its domain.
    """
    drawn: ServingLatencyProblem = family.generate(seed=seed, tasks=len(trace), **parameters)
    return dataclasses.replace(
        drawn,
        input_tokens=trace.input_tokens,
        output_tokens=trace.output_tokens,
        max_output_tokens=None,
    )


FROM_TRACE = FromTrace(
    build=serving_latency,
    families=labelled(FAMILIES, "paper-1"),
    of_the_trace=("tasks", "max_input", "max_output"),
    unused="arrivals: all requests wait at the start",
)
