"""Requests of a trace as one `verification-batch` problem: their contexts, with the devices of a
family.
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
    """Return the problem of a verifier at which all requests of a trace wait, in the order of their
    arrival.

    The input tokens of a request are its context: cached, or for a cold request to be computed.
    What a device adds is drawn: how many tokens it drafted, how likely they are accepted, its speed
    class and with that its deadline, counted from now. The length of responses, and the time
    between arrivals, play no part.

    Parameters
    ----------
    trace
        The requests.
    family
        Where the rest comes from.
    seed
        Seed of the family.
    parameters
        Parameters of the family but requests.

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
