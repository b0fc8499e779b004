"""Conversion of a trace into a `continuous-serving` problem.

The conversion is the same as for `serving-latency`, but uses families of `continuous-serving`. If
the family is `arrivals`, the trace's arrival times are kept.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from specopt.instances.continuous_serving import FAMILIES
from specopt.instances.family import Family, labelled
from specopt.instances.serving_latency.from_trace import serving_latency
from specopt.instances.traces.problem import FromTrace
from specopt.instances.traces.trace import Trace
from specopt.models.continuous_serving.problem import ContinuousServingProblem


def continuous_serving(
    trace: Trace, family: Family, *, seed: int = 0, **parameters: Any
) -> ContinuousServingProblem:
    """Return a `continuous-serving` problem whose tasks are the requests in a trace.

    If the family's problems have arrival times, the trace's arrival times are used instead.

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
        length O_max is the length of the longest response in the trace. If `requests_per_second` is
        specified, the gaps between arrivals are scaled to that mean rate.

    Raises
    ------
    InvalidInput
        If the family has no such parameter, or if a value is outside its domain.
    """
    problem: Any = serving_latency(trace, family, seed=seed, **parameters)
    if problem.arrival_seconds is not None:
        rate = parameters.get("requests_per_second", family.defaults["requests_per_second"])
        arrivals = trace.arrival_seconds * (trace.requests_per_second / rate)
        problem = dataclasses.replace(problem, arrival_seconds=arrivals)
    assert isinstance(problem, ContinuousServingProblem)
    return problem


FROM_TRACE = FromTrace(
    build=continuous_serving,
    families=labelled(FAMILIES, "arrivals", "paper-1"),
    of_the_trace=("tasks", "max_input", "max_output"),
    unused="arrivals, except for the family arrivals: all requests wait at the start",
)
