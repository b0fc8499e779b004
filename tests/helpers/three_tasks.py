"""A small problem of serving latency for the laboratory's tests: three tasks, and a plan of two
batches.
"""

from __future__ import annotations

import numpy as np

from specopt.models.decoder import PaperDecoder
from specopt.models.pass_time import LinearRuntime
from specopt.models.serving_data import Mechanism
from specopt.models.serving_latency.problem import ServingLatencyPlan, ServingLatencyProblem

RUNTIME = LinearRuntime(seconds_per_flop=1e-9, overhead_seconds=0.01)


def three_tasks(
    mechanism: Mechanism, *, rate: float = 0.5, longest: int = 12
) -> tuple[ServingLatencyProblem, ServingLatencyPlan]:
    """Return a problem whose last task has the longest output, and a plan of a batch of two and one
    of one.
    """
    problem = ServingLatencyProblem(
        input_tokens=np.array([5, 9, 7]),
        output_tokens=np.array([4, 6, longest]),
        snr=np.full(3, 3.0),
        bandwidth_hz=1e4,
        draft=PaperDecoder(layers=1, hidden=16, ffn=32),
        verify=PaperDecoder(layers=4, hidden=16, ffn=32),
        draft_runtime=RUNTIME,
        verify_runtime=RUNTIME,
        draft_memory_bytes=1e9,
        acceptance_rate=rate,
        max_speculation_length=4,
        output_lengths="known",
        mechanism=mechanism,
    )
    length = 0 if mechanism == "autoregressive" else 2
    return problem, ServingLatencyPlan(
        speculation_length=length, batches=((0, 1), (2,)), bandwidth_share=np.array([0.3, 0.3, 0.4])
    )
