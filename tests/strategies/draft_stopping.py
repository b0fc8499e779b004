"""Hypothesis strategies for draft stopping: few classes, bins and tokens, zeros and ones among the probabilities."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from specopt import DraftStoppingProblem

RATES = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0.0, 1.0, allow_subnormal=False))


@st.composite
def laws(draw: st.DrawFn, size: int) -> list[float]:
    """Probabilities that sum to 1."""
    weights = draw(st.lists(st.integers(0, 10), min_size=size, max_size=size).filter(any))
    return [weight / sum(weights) for weight in weights]


@st.composite
def draft_stoppings(draw: st.DrawFn, most_tokens: int = 4, most_bins: int = 3) -> DraftStoppingProblem:
    """Problems with at most three classes of rounds."""
    tokens, bins, classes = draw(st.integers(1, most_tokens)), draw(st.integers(1, most_bins)), draw(st.integers(1, 3))
    by_position = st.lists(RATES, min_size=tokens, max_size=tokens)
    shares = draw(laws(classes))
    data: dict[str, Any] = {
        "format": "specopt/1", "kind": "draft-stopping", "max_draft_tokens": tokens,
        "draft_seconds_per_token": draw(st.one_of(st.just(0.0), st.floats(1e-4, 1.0))),
        "round_seconds": draw(st.floats(0.01, 1.0)),
        "rounds": [{"probability": share, "acceptance_rate": draw(st.one_of(RATES, by_position))} for share in shares],
        "scores": {name: draw(laws(bins)) for name in ("accepted", "first_rejection", "after")},
    }  # fmt: skip
    return DraftStoppingProblem.from_dict(data)
