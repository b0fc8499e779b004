"""Hypothesis strategies for `fair-goodput` problems and plans.

The problems include ties, zeros, acceptance rates close to 1, caps, minimum rates, and goodput per
second.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from specopt.kinds.columns import lists_of
from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem

rates = st.sampled_from((0.0, 0.25, 0.5, 0.5, 0.75, 1 - 1e-6)) | st.floats(
    0.0, 0.99, allow_subnormal=False
)
weights = st.sampled_from((0.5, 1.0, 1.0, 2.0)) | st.floats(0.01, 100)
fairness = (
    st.sampled_from((0.0, 0.5, 1.0, 1.0, 2.0, 5.0)) | st.floats(0.05, 0.9) | st.floats(1.1, 6)
)
seconds = st.sampled_from((0.0, 0.01, 0.02)) | st.floats(0.001, 0.1)


@st.composite
def problems(
    draw: st.DrawFn,
    clients: tuple[int, int] = (1, 4),
    budget: tuple[int, int] = (0, 6),
    per: tuple[str, ...] = ("round", "second"),
    minimum: bool = False,
) -> FairGoodputProblem:
    """Draw a valid problem. About half of the problems have caps on the draft tokens per client.

    If `minimum` is set, the problem has minimum rates that are close to the rates in a random
    schedule.
    """
    size = draw(st.integers(*clients))

    def column(item: st.SearchStrategy[Any]) -> list[Any]:
        return draw(lists_of(item, size))

    data = {
        "format": "specopt/1",
        "kind": FairGoodputProblem.kind,
        "acceptance_rates": column(rates),
        "budget_tokens": draw(st.integers(*budget)),
        "fairness": draw(fairness),
        "per": draw(st.sampled_from(per)),
    }
    if draw(st.booleans()):
        data["weights"] = column(weights)
    if draw(st.booleans()):
        data["max_draft_tokens"] = column(st.integers(0, 2 * budget[1]))
    if data["per"] == "second":
        data["draft_seconds_per_token"] = column(seconds)
        data["network_seconds"] = column(seconds)
        data["verify_overhead_seconds"] = draw(st.floats(0.001, 0.1))
        data["verify_seconds_per_token"] = draw(seconds)
    problem = FairGoodputProblem.from_dict(data)
    if not minimum:
        return problem
    reached, _ = problem.realised(draw(plans(problem)).schedule)
    parts = np.array(column(st.sampled_from((0.0, 0.8, 0.95, 1.0, 1.05))))
    return FairGoodputProblem.from_dict(data | {"min_goodput": (parts * reached).tolist()})


@st.composite
def plans(draw: st.DrawFn, problem: FairGoodputProblem) -> FairGoodputPlan:
    """Draw a plan whose declared goodput is correct.

    The first entry of the schedule lists all clients. Each later entry lists either all clients or
    only those whose draft lengths change.
    """
    count = draw(st.integers(1, 4))
    parts = draw(lists_of(st.integers(1, 9), count))
    most = problem.max_tokens.tolist()
    schedule: list[dict[str, Any]] = []
    current = [0] * len(most)
    for index, part in enumerate(parts):
        spare = problem.budget_tokens
        new = []
        for cap in most:
            new.append(draw(st.integers(0, min(cap, spare))))
            spare -= new[-1]
        entry: dict[str, Any] = {"share": part / sum(parts)}
        if index == 0 or draw(st.booleans()):
            entry["draft_tokens"] = new
        else:
            entry["changes"] = [[i, tokens] for i, tokens in enumerate(new) if tokens != current[i]]
        schedule.append(entry)
        current = new
    zeros = [0.0] * len(most)
    guess = {"goodput": zeros, "mean_draft_tokens": zeros, "schedule": schedule}
    goodput, tokens = problem.realised(FairGoodputPlan.from_dict(guess).schedule)
    declared = {"goodput": goodput.tolist(), "mean_draft_tokens": tokens.tolist()}
    return FairGoodputPlan.from_dict({**declared, "schedule": schedule})
