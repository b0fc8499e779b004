"""Hypothesis strategies for `draft-stopping` problems and plans.

The problems have few classes of rounds, few score bins and few tokens. Probabilities may be zero or
one.
"""

from __future__ import annotations

from hypothesis import strategies as st

from specopt.kinds.columns import lists_of
from specopt.models.draft_stopping.problem import DraftStoppingPlan, DraftStoppingProblem

RATES = st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0.0, 1.0, allow_subnormal=False)


@st.composite
def distributions(draw: st.DrawFn, size: int) -> list[float]:
    """Draw a list of `size` probabilities that sum to 1."""
    weights = draw(lists_of(st.integers(0, 10), size).filter(any))
    return [weight / sum(weights) for weight in weights]


@st.composite
def problems(draw: st.DrawFn, max_tokens: int = 4, max_bins: int = 3) -> DraftStoppingProblem:
    """Draw a valid problem with at most three classes of rounds."""
    tokens = draw(st.integers(1, max_tokens))
    bins = draw(st.integers(1, max_bins))
    classes = draw(st.integers(1, 3))
    by_position = lists_of(RATES, tokens)
    shares = draw(distributions(classes))
    costs = st.floats(0.01, 1.0)
    data = {
        "format": "specopt/1",
        "kind": DraftStoppingProblem.kind,
        "max_draft_tokens": tokens,
        "draft_seconds_per_token": draw(st.just(0.0) | st.floats(1e-4, 1.0)),
        "round_seconds": draw(costs | lists_of(costs, tokens + 1)),
        "rounds": [
            {"probability": share, "acceptance_rate": draw(RATES | by_position)} for share in shares
        ],
        "scores": {
            name: draw(distributions(bins)) for name in ("accepted", "first_rejection", "after")
        },
    }
    return DraftStoppingProblem.from_dict(data)


@st.composite
def plans(draw: st.DrawFn, problem: DraftStoppingProblem) -> DraftStoppingPlan:
    """Draw a plan, which is a random automaton with at most three nodes per draft token.

    At each node, each score either leads to a node for the next token or ends drafting.
    """
    bins = len(problem.scores.after)
    widths = draw(st.lists(st.integers(1, 3), max_size=problem.max_draft_tokens))
    firsts = [sum(widths[:t]) for t in range(len(widths) + 1)]
    rows = []
    for t, width in enumerate(widths):
        later = (
            range(firsts[t + 1], firsts[t + 1] + widths[t + 1]) if t + 1 < len(widths) else range(0)
        )
        rows += draw(lists_of(lists_of(st.sampled_from([-1, *later]), bins), width))
    return DraftStoppingPlan.from_dict({"start": 0 if rows else -1, "next": rows})
