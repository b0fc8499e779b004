"""Hypothesis strategies for `draft-allocation` problems and plans.

The problems include ties, zeros, acceptance rates close to 1, and caps below and above the budget.
"""

from __future__ import annotations

from hypothesis import strategies as st

from specopt.kinds.columns import lists_of
from specopt.models.draft_allocation.problem import DraftAllocationPlan, DraftAllocationProblem

NEXT_TO_1 = (1 - 1e-6, 1 - 1e-12, 1 - 2**-53)

rates = st.sampled_from((0.0, 0.25, 0.5, 0.5, 0.75, *NEXT_TO_1)) | st.floats(
    0.0, 0.999, allow_subnormal=False
)
# the last values remain normal after scaling, because subnormal numbers are rejected
weights = (
    st.sampled_from((0.0, 0.25, 0.5, 1.0, 1.0, 2.0))
    | st.floats(1e-3, 1e3)
    | st.sampled_from((1e-290, 1e-9, 1e280))
)


@st.composite
def problems(
    draw: st.DrawFn, clients: tuple[int, int] = (1, 4), budget: tuple[int, int] = (0, 7)
) -> DraftAllocationProblem:
    """Draw a valid problem. About half of the problems have caps on the draft tokens per client."""
    size = draw(st.integers(*clients))
    data = {
        "format": "specopt/1",
        "kind": DraftAllocationProblem.kind,
        "acceptance_rates": draw(lists_of(rates, size)),
        "weights": draw(lists_of(weights, size)),
        "budget_tokens": draw(st.integers(*budget)),
    }
    if draw(st.booleans()):
        caps = st.integers(0, 4) | st.integers(0, 2 * budget[1])
        data["max_draft_tokens"] = draw(lists_of(caps, size))
    return DraftAllocationProblem.from_dict(data)


@st.composite
def plans(draw: st.DrawFn, problem: DraftAllocationProblem) -> DraftAllocationPlan:
    """Draw a random allocation of draft tokens that respects the caps and the budget."""
    spare, tokens = problem.budget_tokens, []
    for cap in problem.caps.tolist():
        tokens.append(draw(st.integers(0, min(cap, spare))))
        spare -= tokens[-1]
    return DraftAllocationPlan.from_dict({"draft_tokens": tokens})
