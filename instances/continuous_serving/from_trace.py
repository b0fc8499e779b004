"""Requests of a trace as one `continuous-serving` problem: as `serving-latency`, and in one family
as they arrived.
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
    """Return the problem of serving the requests of a trace, in a family with arrivals as they
    arrived.

    Parameters
    ----------
    trace
        The requests, one task each.
    family
        Where the rest comes from. Signal-to-noise ratios are those of its own problem of as many
        tasks.
    seed
        Seed of the family.
    parameters
        Parameters of the family but tasks, max_input and max_output. O_max is the longest response
        of the trace. Of `requests_per_second` the gaps between arrivals are stretched to that mean
        rate.

    Raises
    ------
    InvalidInput
        If the family has no such parameter, or a value is outside its domain.
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
    unused="arrivals, but for the family arrivals: all requests are taken to wait at the start",
)
