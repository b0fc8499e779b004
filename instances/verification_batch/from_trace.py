"""Conversion of a trace into a `verification-batch` problem.

The contexts of the requests come from the trace, and all other values come from a family.
"""

from __future__ import annotations

from typing import Any

from specopt.instances.family import Family, labelled
from specopt.instances.traces.problem import FromTrace
from specopt.instances.traces.trace import Trace
from specopt.instances.verification_batch import FAMILIES
from specopt.instances.verification_batch.pending import with_contexts
from specopt.models.verification_batch.problem import VerificationBatchProblem


def verification_batch(
    trace: Trace, family: Family, *, seed: int = 0, **parameters: Any
) -> VerificationBatchProblem:
    """Return the problem in which all requests of a trace wait for a verifier, in order of arrival.

    The input tokens of a request are used as its context. The context is either cached or, for a
    cold request, still to be computed. For each request, the family draws the number of draft
    tokens, the acceptance rate, and the speed class, which determines the deadline relative to the
    current time. Response lengths and interarrival times are not used.

    Parameters
    ----------
    trace
        Trace whose requests wait for the verifier.
    family
        Family that supplies all other fields.
    seed
        Seed of the family.
    parameters
        Parameters of the family other than requests.

    Raises
    ------
    InvalidInput
        If the family has no such parameter, or if a value is outside its domain.
    """
    drawn = family.generate(seed=seed, requests=len(trace), **parameters)
    assert isinstance(drawn, VerificationBatchProblem)
    return with_contexts(drawn, trace.input_tokens, seed=seed)


FROM_TRACE = FromTrace(
    build=verification_batch,
    families=labelled(FAMILIES, "mixed", "warm", "tight", "memory-bound"),
    of_the_trace=("requests",),
    unused="arrivals and responses, because all requests wait now",
)
