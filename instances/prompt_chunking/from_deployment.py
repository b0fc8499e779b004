"""Conversion of a user's deployment into a `prompt-chunking` problem.

In this problem, a typical prompt is sent over the link to the user's verifier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Given, Proposal
from specopt.instances.family import labelled
from specopt.instances.prompt_chunking import FAMILIES

KNOTS = 9
MEASURE = {
    "uplink_bytes_per_second": (
        "--link MBITS,RTT_MS, as iperf3 and ping between the two machines measure it"
    ),
    "message_overhead_seconds": (
        "--set message_overhead_seconds=S, measured with consecutive small messages"
    ),
    "background_tokens": (
        "--set background_tokens=N, mean tokens of other devices in a batch of the verifier"
    ),
    "prompt_tokens": "--trace FILE, a log of requests with the token counts of prompts",
}


def prompt_chunking(known: Deployment, seed: int) -> Proposal:
    """Return the problem of prefilling the median prompt.

    The verifier is modelled as a single stage, because its passes were measured as a whole.
    """
    (family,) = labelled(FAMILIES, "paper-4")
    base = family.generate(seed=seed)
    verify = known.verify
    size = float(verify.exact.hidden * verify.exact.bytes_per_value)
    given: Given = {
        "bytes_per_token": (size, f"hidden state of {verify.name}"),
        "cloud_delay": _delay(known),
        "pipeline_length": (1, f"{known.passes.path}: passes of the whole model"),
    }
    if known.trace is not None:
        given["prompt_tokens"] = (
            int(np.median(known.trace.input_tokens)),
            f"median of {known.rows}",
        )
    if known.link is not None:
        for name in ("uplink_bytes_per_second", "downlink_bytes_per_second"):
            given[name] = (known.link.bits_per_second / 8.0, "--link")
        if known.link.round_trip_seconds is not None:
            given["link_latency_seconds"] = (
                known.link.round_trip_seconds / 2.0,
                "--link: half of its round trip",
            )
    unused = [] if known.memory_bytes is None else ["--memory: the model has no memory"]
    if known.acceptance is not None:
        unused.append("--acceptance: a prompt is not drafted")
    return Proposal.of(base, family, given, MEASURE, unused)


def _delay(known: Deployment) -> tuple[dict[str, Any], str]:
    """Return a prefill's duration as a function of its number of tokens.

    The second item of the result is the source of the data.
    """
    passes = known.passes.times["verify"]
    sizes = np.exp2(np.arange(KNOTS + 4.0))
    inside = np.broadcast_to(passes.covers(np.ones(1), sizes, np.zeros(1)), sizes.shape)
    sizes = sizes[inside] if inside.sum() > 1 else sizes
    seconds = np.maximum.accumulate(
        np.broadcast_to(passes.seconds(np.ones(1), sizes, np.zeros(1)), sizes.shape)
    )
    source = f"{known.passes.path}: passes of 1 to {sizes[-1]:g} tokens, with the last slope beyond"
    return {"tokens": sizes.tolist(), "seconds": seconds.tolist()}, source
