"""Conversion of a user's deployment into a `verification-batch` problem.

In this problem, requests wait for the user's verifier. The contexts of the requests come from a
trace.
"""

from __future__ import annotations

from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Given, Proposal
from specopt.instances.family import labelled
from specopt.instances.runtimes.fields import of_verification_batch
from specopt.instances.verification_batch import FAMILIES
from specopt.instances.verification_batch.from_trace import FROM_TRACE
from specopt.instances.verification_batch.pending import drafted_tokens
from specopt.models.errors import InvalidInput
from specopt.models.verification_batch.problem import VerificationBatchProblem

FORM = "additive"
MEASURE = {
    "expected_tokens": (
        "--acceptance FILE, two scrapes of an engine's /metrics or its acceptance histogram"
    ),
    "deadline_seconds": "--set deadline_seconds=[...], from the latency that you guarantee",
    "cached_tokens": "--trace FILE, a log of requests with the token counts of prompts",
    "memory_bytes": "--memory GB, the memory of the machine that verifies",
}


def verification_batch(known: Deployment, seed: int) -> Proposal:
    """Return the problem of choosing a batch from requests that wait for the user's verifier.

    Raises
    ------
    InvalidInput
        If the weights do not fit in memory, or if the file does not contain an estimator.
    """
    (family,) = labelled(FAMILIES, "mixed")
    trace, verify = known.trace, known.verify
    base = (
        family.generate(seed=seed)
        if trace is None
        else FROM_TRACE.problem(trace, family.label, seed=seed)
    )
    assert isinstance(base, VerificationBatchProblem)
    path = known.passes.path
    estimator = of_verification_batch(known.passes.runtimes(FORM), path)["estimator"]
    given: Given = {"estimator": (estimator, path)}
    tokens = base.new_tokens + base.cached_tokens
    given["request_memory_bytes"] = (
        (tokens * float(verify.kv_bytes_per_token)).tolist(),
        f"cache of {verify.name}, for new and cached tokens",
    )
    if trace is not None:
        source = f"{known.rows}; drafts and cold requests from {family.name}"
        given |= {
            "new_tokens": (base.new_tokens.tolist(), source),
            "cached_tokens": (base.cached_tokens.tolist(), source),
        }
    if known.memory_bytes is not None:
        free = known.memory_bytes - verify.weight_bytes
        if free <= 0.0:
            raise InvalidInput(
                f"memory: expected more than {verify.weight_bytes / 1e9:g} GB, the size of the"
                f" weights of {verify.name}, got {known.memory_bytes / 1e9:g} GB"
            )
        given["memory_bytes"] = (free, f"--memory minus the weights of {verify.name}")
    if known.acceptance is not None:
        drafts = drafted_tokens(seed, base.requests)
        found = known.acceptance.expected_tokens(int(drafts.max()))[drafts]
        given["expected_tokens"] = (
            found.tolist(),
            f"--acceptance, for drafts of {family.name}",
        )
    unused = (
        [] if known.link is None else ["--link: the model starts after the drafts have arrived"]
    )
    if trace is not None:
        unused.append(f"the trace's {FROM_TRACE.unused}")
    return Proposal.of(base, family, given, MEASURE, unused)
