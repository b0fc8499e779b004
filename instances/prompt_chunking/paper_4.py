"""A family with the prototype of paper 4: one prompt, a WiFi link, and the cloud delay of Fig. 1.

Vicuna-7B has a hidden size of 4096 at 2 bytes per value, and Fig. 1 shows the cloud delay of this
model. Vicuna-13B has a hidden size of 5120, and its cloud delay is the same curve, scaled by the
number of parameters. Uplink rates are 5-10 MB/s, and downlink rates are 10-15 MB/s. The paper does
not report the overhead of a message.
"""

from __future__ import annotations

from specopt.instances.prompt_chunking.workload import cloud_delay
from specopt.models.arguments import number, one_of, positive
from specopt.models.prompt_chunking.problem import PromptChunkingProblem

HIDDEN_BYTES = {"vicuna-7b": 4096 * 2.0, "vicuna-13b": 5120 * 2.0}


def paper_4(
    *,
    prompt_tokens: int = 891,
    uplink_megabytes_per_second: float = 7.5,
    downlink_megabytes_per_second: float = 12.5,
    pipeline_length: int = 4,
    background_tokens: float = 10.0,
    message_milliseconds: float = 3.0,
    model: str = "vicuna-7b",
    seed: int = 0,
) -> PromptChunkingProblem:
    """One prompt on the testbed of paper 4 (Sec. 4.1).

    Parameters
    ----------
    prompt_tokens
        Prompt length N.
    uplink_megabytes_per_second
        Uplink rate in 10^6 bytes per second; 5-10 in the paper.
    downlink_megabytes_per_second
        Downlink rate in 10^6 bytes per second; 10-15 in the paper.
    pipeline_length
        Number P of GPUs in the cloud pipeline.
    background_tokens
        Number mu of tokens from other devices in a batch.
    message_milliseconds
        Overhead of each uploaded chunk, in addition to the time to upload the chunk's bytes.
    model
        Model that determines the size of a hidden state and the cloud delay: "vicuna-7b"
        (SpecBench) or "vicuna-13b" (CNN/DM).
    seed
        Not used; the instance is deterministic.
    """
    one_of("model", model, HIDDEN_BYTES)
    uplink = positive("uplink_megabytes_per_second", uplink_megabytes_per_second)
    downlink = positive("downlink_megabytes_per_second", downlink_megabytes_per_second)
    return PromptChunkingProblem(
        prompt_tokens=prompt_tokens,
        bytes_per_token=HIDDEN_BYTES[model],
        uplink_bytes_per_second=uplink * 1e6,
        downlink_bytes_per_second=downlink * 1e6,
        cloud_delay=cloud_delay(model),
        background_tokens=number("background_tokens", background_tokens, 0),
        pipeline_length=pipeline_length,
        message_overhead_seconds=number("message_milliseconds", message_milliseconds, 0) * 1e-3,
    )
