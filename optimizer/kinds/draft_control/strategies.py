"""Hypothesis strategies for `draft-control` problems and plans.

The channels are Markov chains with a single recurrent class, which may be periodic. Some chains
also have transient states.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from specopt.kinds.columns import lists_of
from specopt.models.draft_control.problem import DraftControlPlan, DraftControlProblem

acceptance = st.sampled_from((0.0, 0.125, 0.5, 0.75, 0.9, 1.0)) | st.floats(
    0.0, 1.0, allow_subnormal=False
)
uplinks = st.sampled_from((10.0, 300.0, 5e3, 1e6)) | st.floats(1.0, 1e6)
draft_seconds = st.sampled_from((0.0, 1e-3, 0.02))
verify_seconds = st.sampled_from((1e-3, 0.1, 1.0))


@st.composite
def transitions(draw: st.DrawFn, size: int) -> list[list[float]]:
    """Draw the transition matrix of a Markov chain with a single recurrent class.

    State 0 can be reached from every state and therefore belongs to the recurrent class.
    """
    rows = []
    for state in range(size):
        weights = draw(lists_of(st.integers(0, 3), size))
        weights[max(0, state - 1)] += state > 0 or not any(weights)
        rows.append([weight / sum(weights) for weight in weights])
    return rows


@st.composite
def problems(
    draw: st.DrawFn, states: tuple[int, int] = (1, 3), longest: int = 3, resolutions: int = 2
) -> DraftControlProblem:
    """Draw a valid problem that is so small that it has only a few policies."""
    size = draw(st.integers(*states))
    values = draw(st.lists(st.integers(1, 12), min_size=1, max_size=resolutions, unique=True))
    count = len(values)
    shortest = draw(st.integers(0, 2))
    longest = draw(st.integers(shortest, max(shortest, longest)))
    code = draw(st.sampled_from(("lattice", "support")))

    def state() -> dict[str, Any]:
        data = {
            "uplink_bits_per_second": draw(uplinks),
            "acceptance_rates": draw(lists_of(acceptance, count)),
        }
        if draw(st.booleans()):
            data["downlink_bits_per_second"] = draw(uplinks)
        if code == "support":
            data["distribution_bits"] = draw(lists_of(st.sampled_from((0.0, 3.5, 40.0)), count))
        return data

    return DraftControlProblem.from_dict(
        {
            "format": "specopt/1",
            "kind": DraftControlProblem.kind,
            "vocabulary_size": draw(st.sampled_from((2, 3, 8, 17, 500))),
            "draft_seconds_per_token": draw(draft_seconds),
            "verify_seconds": draw(verify_seconds | lists_of(verify_seconds, longest + 1)),
            "draft_lengths": [shortest, longest],
            "resolutions": values,
            "states": [state() for _ in range(size)],
            "transition": draw(transitions(size)),
            "distribution_code": code,
        }
    )


@st.composite
def plans(draw: st.DrawFn, problem: DraftControlProblem) -> DraftControlPlan:
    """Draw a random policy, which assigns a draft length and a resolution to every state."""
    lengths = st.integers(*problem.draft_lengths)
    values = st.sampled_from(problem.resolutions.tolist())
    choice = st.fixed_dictionaries({"draft_length": lengths, "resolution": values})
    count = len(problem.states)
    return DraftControlPlan.from_dict({"policy": draw(lists_of(choice, count))})
