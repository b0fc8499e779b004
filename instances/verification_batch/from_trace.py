"""Conversion of a trace to one `verification-batch` problem: the contexts of its requests, with the
devices of a family.
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
    """Return the problem of a verifier at which all requests of a trace wait, in order of arrival.

    The input tokens of a request are its context, which is either cached or, for a cold request,
    still to be computed. The properties of the device are drawn: the number of draft tokens, their
    acceptance rate, the speed class and with it the deadline, relative to now. The lengths of
    responses and the times between arrivals are not used.

    Parameters
    ----------
    trace
        Requests, in any order.
    family
        Family that supplies the other fields.
    seed
        Seed of the family.
    parameters
        Parameters of the family except requests.

    Raises
    ------
    InvalidInput
        If the family has no such parameter, or a value is outside its domain.
    """
    drawn = family.generate(seed=seed, requests=len(trace), **parameters)
    assert isinstance(drawn, VerificationBatchProblem)
    return with_contexts(drawn, trace.input_tokens, seed=seed)


FROM_TRACE = FromTrace(
    build=verification_batch,
    families=labelled(FAMILIES, "mixed", "warm", "tight", "memory-bound"),
    of_the_trace=("requests",),
    unused="arrivals and responses: all requests wait now",
)
