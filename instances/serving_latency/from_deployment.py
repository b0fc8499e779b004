"""Conversion of a user's deployment into a `serving-latency` problem.

In this problem, the requests of a trace are served with the user's models, passes and link.
"""

from __future__ import annotations

from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Given, Proposal
from specopt.instances.family import labelled
from specopt.instances.runtimes.fields import of_serving_latency
from specopt.instances.serving_latency import FAMILIES
from specopt.instances.serving_latency.from_trace import FROM_TRACE
from specopt.models.fields import dump

FORM = "roofline"
MEASURE = {
    "acceptance_rate": (
        "--acceptance FILE, two scrapes of an engine's /metrics or its acceptance histogram"
    ),
    "output_tokens": (
        "--trace FILE, a log of requests with the token counts of prompts and responses"
    ),
    "bandwidth_hz": "--link MBITS, as iperf3 between the two machines measures it",
    "draft_memory_bytes": "--memory GB, the free memory of the machine that drafts",
    "max_speculation_length": (
        "--set max_speculation_length=N, the longest draft that the engine accepts"
    ),
}


def serving_latency(known: Deployment, seed: int) -> Proposal:
    """Return the `serving-latency` problem in which all requests are served together.

    All tasks share the bandwidth of one link.

    Raises
    ------
    InvalidInput
        If values in the deployment contradict each other.
    """
    (family,) = labelled(FAMILIES, "paper-1")
    trace, link = known.trace, known.link
    base = (
        family.generate(seed=seed)
        if trace is None
        else FROM_TRACE.problem(trace, family.label, seed=seed)
    )
    runtimes = of_serving_latency(known.passes.runtimes(FORM), known.passes.path)
    given: Given = {
        name: (runtimes.get(name, dump(config.exact)), f"config of {config.name}")
        for name, config in known.passes.models.items()
    }
    given |= {
        name: (runtimes[name], known.passes.path) for name in ("draft_runtime", "verify_runtime")
    }
    unused = []
    if trace is not None:
        given["input_tokens"] = (trace.input_tokens.tolist(), known.rows)
        given["output_tokens"] = (trace.output_tokens.tolist(), known.rows)
        given["max_output_tokens"] = (int(trace.output_tokens.max()), f"longest of {known.rows}")
        unused.append(f"the trace's {FROM_TRACE.unused}")
    if link is not None:
        given["bandwidth_hz"] = (link.bits_per_second, "--link")
        given["snr"] = (
            [1.0] * len(base.to_dict()["snr"]),
            "--link: one bit per second and hertz for every task",
        )
        if link.round_trip_seconds is not None:
            unused.append("round trip of --link: the model has no message latency")
    if known.memory_bytes is not None:
        given["draft_memory_bytes"] = (known.memory_bytes, "--memory")
    if known.acceptance is not None:
        given["acceptance_rate"] = (known.rate, "--acceptance, as one rate")
    return Proposal.of(base, family, given, MEASURE, unused)
