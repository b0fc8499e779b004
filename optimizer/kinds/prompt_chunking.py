"""`prompt-chunking`: the chunk sizes of a long prompt (paper 4)."""

from __future__ import annotations

from collections.abc import Iterator

from specopt.instances.deployment.prompt_chunking import prompt_chunking
from specopt.instances.prompt_chunking import FAMILIES, WORKLOADS
from specopt.kinds.kind import Kind, Row
from specopt.kinds.simulator import Simulator
from specopt.models.prompt_chunking import PromptChunkingPlan, PromptChunkingProblem
from specopt.models.prompt_workload import PromptWorkload
from specopt.solvers.prompt_chunking import METHODS
from specopt.solvers.prompt_chunking.schemes import SCHEMES


def _rows(plan: PromptChunkingPlan) -> Iterator[Row]:
    first = 0
    for chunk, tokens in enumerate(plan.chunks.tolist()):
        yield {"chunk": chunk, "first_token": first, "tokens": tokens}
        first += tokens


KIND = Kind(
    problem=PromptChunkingProblem,
    methods=METHODS,
    families=FAMILIES,
    from_deployment=prompt_chunking,
    rows=_rows,
    view="specopt.views.prompt_chunking",
    simulator=Simulator(
        world=PromptWorkload, module="specopt.solvers.prompt_chunking.simulate", policies=SCHEMES, workloads=WORKLOADS
    ),
)
