"""A family with the setting of paper 1, Tables I and II.

Users in a cell send requests to an edge server that drafts and a base station that verifies.
"""

from __future__ import annotations

import numpy as np

from specopt.models.arguments import integer, number, one_of, random_generator
from specopt.models.decoder import PaperDecoder
from specopt.models.fields import MAX_TOKENS
from specopt.models.pass_time import LinearRuntime
from specopt.models.serving_latency.problem import ServingLatencyProblem

# Table I
LLAMA_68M = PaperDecoder(name="LLaMA-68M", layers=2, hidden=768, ffn=3072)
LLAMA_1_1B = PaperDecoder(name="LLaMA-1.1B", layers=22, hidden=2048, ffn=5632)
LLAMA_7B = PaperDecoder(name="LLaMA-7B", layers=32, hidden=4096, ffn=11008)
LLAMA_13B = PaperDecoder(name="LLaMA-13B", layers=40, hidden=5120, ffn=13824)

PAIRS = {
    "68M-7B": (LLAMA_68M, LLAMA_7B),
    "1.1B-7B": (LLAMA_1_1B, LLAMA_7B),
    "1.1B-13B": (LLAMA_1_1B, LLAMA_13B),
}

# Table II
DRAFT_RUNTIME = LinearRuntime(
    seconds_per_flop=4.11e-13, overhead_seconds=0.56e-3
)  # RTX 3080, c1^d and c2^d
VERIFY_RUNTIME = LinearRuntime(
    seconds_per_flop=2.08e-14, overhead_seconds=1.28e-2
)  # RTX 4500, c1^v and c2^v
TRANSMIT_POWER_W = 0.2
NOISE_POWER_W = 10**-13.6  # -106 dBm
DRAFT_MEMORY_BYTES = 16e9
MAX_SPECULATION_LENGTH = 10

# Sec. IV
CELL_RADIUS_M = 400.0
MIN_DISTANCE_M = 1.0
PATH_LOSS_AT_1_M = 1e-3  # g0 = -30 dB


def paper_1(
    *,
    pair: str = "1.1B-7B",
    tasks: int = 100,
    max_input: int = 512,
    max_output: int = 2048,
    alpha: float = 0.8,
    bandwidth: float = 20e6,
    seed: int = 0,
) -> ServingLatencyProblem:
    """Tasks with uniformly distributed lengths, from users spread over one cell (paper 1, Sec. IV,
    Tables I and II).

    Difficulty: for the LLaMA-1.1B pairs, the two stages have similar durations, draft memory binds,
    and padding, pipeline order and batch overhead favour different plans.

    Parameters
    ----------
    pair
        Draft and verify models: "68M-7B", "1.1B-7B" or "1.1B-13B".
    tasks
        Number of tasks K.
    max_input
        Largest input length; input lengths are uniform on 1..max_input.
    max_output
        Largest output length O_max; output lengths are uniform on 1..max_output.
    alpha
        Acceptance rate.
    bandwidth
        Uplink bandwidth in hertz.
    seed
        Seed of `numpy.random.default_rng`.
    """
    tasks = integer("tasks", tasks, 1, MAX_TOKENS)
    max_output = integer("max_output", max_output, 1, MAX_TOKENS)
    rng = random_generator(seed)
    inputs = rng.integers(
        1, integer("max_input", max_input, 1, MAX_TOKENS), size=tasks, endpoint=True
    )
    outputs = rng.integers(1, max_output, size=tasks, endpoint=True)
    distance = np.maximum(
        MIN_DISTANCE_M, CELL_RADIUS_M * np.sqrt(rng.uniform(size=tasks))
    )  # uniform in the disc
    gain = PATH_LOSS_AT_1_M * rng.exponential(size=tasks) / distance**2
    draft, verify = PAIRS[one_of("pair", pair, PAIRS)]
    return ServingLatencyProblem(
        input_tokens=inputs,
        output_tokens=outputs,
        snr=TRANSMIT_POWER_W * gain / NOISE_POWER_W,
        bandwidth_hz=bandwidth,
        draft=draft,
        verify=verify,
        draft_runtime=DRAFT_RUNTIME,
        verify_runtime=VERIFY_RUNTIME,
        draft_memory_bytes=DRAFT_MEMORY_BYTES,
        acceptance_rate=number("alpha", alpha, above=0, below=1),
        max_speculation_length=MAX_SPECULATION_LENGTH,
        output_lengths="conservative",
        max_output_tokens=max_output,
    )
