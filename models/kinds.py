"""Every kind of problem, by the name that files use."""

from __future__ import annotations

from specopt.models.draft_allocation import DraftAllocationProblem
from specopt.models.draft_control import DraftControlProblem
from specopt.models.errors import InvalidInput
from specopt.models.fair_goodput import FairGoodputProblem
from specopt.models.problem import Problem
from specopt.models.prompt_chunking import PromptChunkingProblem
from specopt.models.serving_latency import ServingLatencyProblem
from specopt.models.verification_batch import VerificationBatchProblem

PROBLEMS: tuple[type[Problem], ...] = (
    ServingLatencyProblem,
    PromptChunkingProblem,
    DraftAllocationProblem,
    FairGoodputProblem,
    VerificationBatchProblem,
    DraftControlProblem,
)
KINDS: dict[str, type[Problem]] = {problem.kind: problem for problem in PROBLEMS}


def problem_type(kind: object) -> type[Problem]:
    """Return the problem class of a kind.

    Raises
    ------
    InvalidInput
        If there is no such kind.
    """
    if not isinstance(kind, str) or kind not in KINDS:
        raise InvalidInput(f"kind: expected one of {', '.join(KINDS)}, got {kind!r}")
    return KINDS[kind]
