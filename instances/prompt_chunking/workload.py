"""The workloads of paper 4: SpecBench on Vicuna-7B and CNN/DM on Vicuna-13B.

The paper uses 30 Jetson devices and 8 A6000 GPUs. It reports prompt lengths (Table 3), hidden
sizes, numbers of layers, and at most 128 generated tokens. It also reports bandwidths of 5 to 10
MB/s for uplinks and 10 to 15 MB/s for downlinks. This module sets the values that the paper omits;
`paper_4_simulation` calibrates them:

* The cloud delay g of Vicuna-7B is piecewise linear, with four points that reproduce Fig. 1 and the
  text about it. For Vicuna-13B, the same curve is scaled by the number of parameters in the cloud
  layers (37 of 40 layers compared with 30 of 32).
* A drafting step reads the weights of the draft model once from memory. These weights are the first
  layers, the adapter and the head in 16 bits. The bandwidths are those of Jetson AGX Xavier (136.5
  GB/s, two of three devices) and Orin (204.8 GB/s).
* The local computation of Fig. 1, 0.09 s for 2000 tokens, is assumed to be proportional to the
  number of tokens.
* The paper does not report draft lengths, acceptance by position, or how often the accepted token
  is among the top-k candidates. In this module, every draft token is accepted with the same
  probability, which is chosen to reproduce the accept length of Table 4. A draft ends after each
  token with a fixed probability, or when it has `max_drafted` tokens. The last token sent is the
  token whose confidence is below the threshold (Eq. 5).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specopt.models.arguments import integer, one_of, positive
from specopt.models.fields import MAX_TOKENS
from specopt.models.pass_time import CloudDelay
from specopt.models.prompt_chunking.workload import PromptWorkload

FIGURE_1 = CloudDelay(
    tokens=np.array([0.0, 10.0, 512.0, 2000.0]),
    seconds=np.array([0.026141581, 0.027021974, 0.071217721, 0.28]),
)
"""Cloud delay g of Vicuna-7B on one A6000, which reproduces Fig. 1.

The delay rises by 10.1 % from 1 to 32 prompt tokens and is 0.28 s at 2000 tokens. Chunks of 32
tokens reduce the delay by 82.3 ms, as in Fig. 1(d).
"""

LAYER_PARAMETERS = {
    "vicuna-7b": 4 * 4096**2 + 3 * 4096 * 11008,
    "vicuna-13b": 4 * 5120**2 + 3 * 5120 * 13824,
}
ADAPTER_PARAMETERS = {"vicuna-7b": 67e6, "vicuna-13b": 105e6}
"""Numbers of adapter parameters, as reported in Table 4."""
JETSON_BYTES_PER_SECOND = (136.5e9, 136.5e9, 204.8e9)
"""Memory bandwidths of the devices, in bytes per second.

Two thirds of the devices (20 of 30) are AGX Xavier, and the others are AGX Orin.
"""

# total number of layers, number of layers on the device, hidden size
_LAYERS = {"vicuna-7b": (32, 2, 4096), "vicuna-13b": (40, 3, 5120)}
_PROMPTS = {"specbench": (351.2, 397.3), "cnn-dm": (1036.6, 511.8)}  # Table 3
_MODELS = {"specbench": "vicuna-7b", "cnn-dm": "vicuna-13b"}
ACCEPT_LENGTHS = {"specbench": (1.89, 2.06), "cnn-dm": (1.75, 1.98)}
"""Mean numbers of tokens per round for U-Medusa and HAT, as reported in Table 4."""
_SERVER_CHUNK = {"specbench": 128, "cnn-dm": 256}  # Sec. 4.1
LOCAL_SECONDS_PER_TOKEN = 0.09 / 2000.0


def cloud_delay(model: str, scale: float = 1.0) -> CloudDelay:
    """Return the cloud delay g for a model's middle layers on one A6000, multiplied by `scale`."""
    layers, local, _ = _LAYERS[model]
    share = (layers - local) * LAYER_PARAMETERS[model] / (30 * LAYER_PARAMETERS["vicuna-7b"])
    return CloudDelay(tokens=FIGURE_1.tokens, seconds=FIGURE_1.seconds * share * scale)


def draft_seconds(model: str, *, adapter: bool = True) -> tuple[float, ...]:
    """Return the duration of a drafting step on each kind of device, in seconds.

    Without the adapter, the step runs only the first layers and the head.
    """
    _, local, hidden = _LAYERS[model]
    weights = (
        local * LAYER_PARAMETERS[model]
        + 32000 * hidden
        + (ADAPTER_PARAMETERS[model] if adapter else 0.0)
    )
    return tuple(2.0 * weights / bandwidth for bandwidth in JETSON_BYTES_PER_SECOND)


def paper_4_workload(
    dataset: str = "specbench",
    *,
    requests_per_second: float = 6.0,
    pipeline_length: int = 4,
    link_scale: float = 1.0,
    cloud_scale: float = 1.0,
    link_latency_seconds: float = 0.0,
    message_overhead_seconds: float = 0.0,
    local_overhead_seconds: float | None = None,
) -> PromptWorkload:
    """Return the workload of paper 4 for one of its two data sets.

    Parameters
    ----------
    dataset
        Name of the data set: "specbench" or "cnn-dm".
    requests_per_second
        Arrival rate of the Poisson process, in requests per second.
    pipeline_length
        Number of GPUs in the pipeline.
    link_scale
        Factor by which the published bandwidths are multiplied: 5-10 MB/s up, 10-15 MB/s down.
    cloud_scale
        Factor by which the cloud delay g is multiplied.
    link_latency_seconds
        Latency of the link, in seconds, which the paper does not report.
    message_overhead_seconds
        Overhead per message, in seconds, which the paper does not report.
    local_overhead_seconds
        Fixed part of the time for a pass through the layers on the device. None means the time to
        read the weights of these layers once, averaged over the devices.

    Raises
    ------
    InvalidInput
        If no data set has this name, or if a value is outside its domain.
    """
    one_of("dataset", dataset, _PROMPTS)
    link_scale = positive("link_scale", link_scale)
    cloud_scale = positive("cloud_scale", cloud_scale)
    model = _MODELS[dataset]
    mean, std = _PROMPTS[dataset]
    if local_overhead_seconds is None:
        local_overhead_seconds = float(np.mean(draft_seconds(model, adapter=False)))
    return PromptWorkload(
        requests_per_second=requests_per_second,
        prompt_mean_tokens=mean,
        prompt_std_tokens=std,
        bytes_per_token=2.0 * _LAYERS[model][2],
        uplink_bytes_per_second=np.array([5e6, 10e6]) * link_scale,
        downlink_bytes_per_second=np.array([10e6, 15e6]) * link_scale,
        draft_seconds=np.array(draft_seconds(model)),
        cloud_delay=cloud_delay(model, cloud_scale),
        pipeline_length=pipeline_length,
        local_overhead_seconds=local_overhead_seconds,
        local_seconds_per_token=LOCAL_SECONDS_PER_TOKEN,
        message_overhead_seconds=message_overhead_seconds,
        link_latency_seconds=link_latency_seconds,
        tree_tokens_per_round=ACCEPT_LENGTHS[dataset][0],
        draft_tokens_per_round=ACCEPT_LENGTHS[dataset][1],
        server_chunk_tokens=_SERVER_CHUNK[dataset],
    )


def specbench(
    *,
    requests_per_second: float = 6.0,
    pipeline_length: int = 4,
    link_scale: float = 1.0,
    cloud_scale: float = 1.0,
) -> PromptWorkload:
    """Return the workload for SpecBench on Vicuna-7B; see `paper_4_workload` for the parameters."""
    return paper_4_workload(
        "specbench",
        requests_per_second=requests_per_second,
        pipeline_length=pipeline_length,
        link_scale=link_scale,
        cloud_scale=cloud_scale,
    )


def cnn_dm(
    *,
    requests_per_second: float = 4.0,
    pipeline_length: int = 4,
    link_scale: float = 1.0,
    cloud_scale: float = 1.0,
) -> PromptWorkload:
    """Return the workload for CNN/DM on Vicuna-13B; see `paper_4_workload` for the parameters."""
    return paper_4_workload(
        "cnn-dm",
        requests_per_second=requests_per_second,
        pipeline_length=pipeline_length,
        link_scale=link_scale,
        cloud_scale=cloud_scale,
    )


def equal_prompts(
    *, prompt_tokens: int = 2000, requests_per_second: float = 2.0, pipeline_length: int = 4
) -> PromptWorkload:
    """Return the SpecBench workload with the same length for all prompts.

    Parameters
    ----------
    prompt_tokens
        Length of every prompt.
    requests_per_second
        Arrival rate of the Poisson process, as in `paper_4_workload`.
    pipeline_length
        Number of GPUs in the pipeline, as in `paper_4_workload`.
    """
    lengths = np.array([integer("prompt_tokens", prompt_tokens, 1, MAX_TOKENS)])
    return replace(
        specbench(requests_per_second=requests_per_second, pipeline_length=pipeline_length),
        prompt_tokens=lengths,
    )
