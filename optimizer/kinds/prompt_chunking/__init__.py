"""Declaration of the kind `prompt-chunking` (paper 4), which determines the sizes of the chunks
into which a long prompt is split.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specopt.instances.prompt_chunking import FAMILIES, WORKLOADS
from specopt.instances.prompt_chunking.from_deployment import prompt_chunking
from specopt.kinds.kind import FASTER, Kind, Row, Simulator, added, faster, more
from specopt.models.prompt_chunking.problem import PromptChunkingPlan, PromptChunkingProblem
from specopt.models.prompt_chunking.workload import PromptWorkload
from specopt.solvers.prompt_chunking import METHODS
from specopt.solvers.prompt_chunking.milp import FORMULATION
from specopt.solvers.prompt_chunking.schemes import SCHEMES


def _rows(plan: PromptChunkingPlan) -> Iterator[Row]:
    first = 0
    for chunk, tokens in enumerate(plan.chunks.tolist()):
        yield {"chunk": chunk, "first_token": first, "tokens": tokens}
        first += tokens


KIND = Kind(
    problem=PromptChunkingProblem,
    methods=METHODS,
    formulation=FORMULATION,
    families=FAMILIES,
    from_deployment=prompt_chunking,
    rows=_rows,
    perturbations=(
        added("uplink_bytes_per_second", "+1 MB/s uplink", 1e6),
        added("downlink_bytes_per_second", "+1 MB/s downlink", 1e6),
        more(
            "cloud_delay",
            "cloud 1 % faster",
            lambda delay: replace(delay, seconds=FASTER * delay.seconds),
        ),
        faster("local_overhead_seconds", "local overhead"),
        faster("local_seconds_per_token", "local tokens"),
        faster("message_overhead_seconds", "overhead of messages"),
        faster("link_latency_seconds", "latency of the link"),
        faster("head_seconds", "head"),
        added("max_chunks", "+1 chunk", 1),
    ),
    simulator=Simulator(
        world=PromptWorkload,
        module="specopt.solvers.prompt_chunking.simulate",
        policies=SCHEMES,
        workloads=WORKLOADS,
    ),
)
