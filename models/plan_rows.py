"""A plan as rows: one per task, request, client, chunk, state or schedule entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from specopt.models.draft_allocation import DraftAllocationPlan
from specopt.models.draft_control import DraftControlPlan
from specopt.models.errors import InvalidInput
from specopt.models.fair_goodput import FairGoodputPlan
from specopt.models.problem import Plan
from specopt.models.prompt_chunking import PromptChunkingPlan
from specopt.models.serving_latency import ServingLatencyPlan
from specopt.models.verification_batch import VerificationBatchPlan

Row = dict[str, Any]


def rows_of(plan: Plan) -> list[Row]:
    """Return the rows of a plan, all with the same keys; what holds for the whole plan is in every row."""
    return list(_ROWS[type(plan)](plan))


def _serving_latency(plan: ServingLatencyPlan) -> Iterator[Row]:
    share = plan.bandwidth_share
    tasks = sorted(task for batch in plan.batches for task in batch)
    if tasks != list(range(len(share))):
        raise InvalidInput(f"plan.batches: expected each of the {len(share)} tasks of bandwidth_share in one batch")
    place = {task: (number, i) for number, batch in enumerate(plan.batches) for i, task in enumerate(batch)}
    for task in sorted(place):
        batch, position = place[task]
        yield {
            "task": task,
            "batch": batch,
            "position": position,
            "bandwidth_share": float(share[task]),
            "speculation_length": plan.speculation_length,
            **({"mechanism": plan.mechanism} if plan.mechanism is not None else {}),
        }


def _verification_batch(plan: VerificationBatchPlan) -> Iterator[Row]:
    return ({"position": i, "request": int(request)} for i, request in enumerate(plan.batch))


def _draft_control(plan: DraftControlPlan) -> Iterator[Row]:
    for state, choice in enumerate(plan.policy):
        yield {"state": state, "draft_length": choice.draft_length, "resolution": choice.resolution}


def _prompt_chunking(plan: PromptChunkingPlan) -> Iterator[Row]:
    first = 0
    for chunk, tokens in enumerate(plan.chunks.tolist()):
        yield {"chunk": chunk, "first_token": first, "tokens": tokens}
        first += tokens


def _draft_allocation(plan: DraftAllocationPlan) -> Iterator[Row]:
    return ({"client": i, "draft_tokens": tokens} for i, tokens in enumerate(plan.draft_tokens.tolist()))


def _fair_goodput(plan: FairGoodputPlan) -> Iterator[Row]:
    for entry, (share, tokens) in enumerate(plan.schedule.allocations()):
        yield {"entry": entry, "share": share, **{f"client_{i}": count for i, count in enumerate(tokens.tolist())}}


_ROWS: dict[type[Plan], Callable[[Any], Iterator[Row]]] = {
    ServingLatencyPlan: _serving_latency,
    VerificationBatchPlan: _verification_batch,
    DraftControlPlan: _draft_control,
    PromptChunkingPlan: _prompt_chunking,
    DraftAllocationPlan: _draft_allocation,
    FairGoodputPlan: _fair_goodput,
}
