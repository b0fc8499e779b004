"""Small instances of `draft-allocation` for the conformance suite."""

from __future__ import annotations

import dataclasses

from specopt import DraftAllocationProblem, Problem, generate


def _instances() -> dict[str, Problem]:
    """Small instances of `draft-allocation`: sizes 1 and 4, ties, zeros, caps, more budget than
    use.
    """
    base = generate("draft-allocation/uniform", clients=4, budget=9, seed=1)
    assert isinstance(base, DraftAllocationProblem)
    replace = dataclasses.replace
    return {
        "base": base,
        "paper": generate("draft-allocation/paper-5"),
        "one client": generate("draft-allocation/uniform", clients=1, budget=5),
        "equal clients": replace(base, acceptance_rates=[0.5] * 4, weights=[1.0] * 4),
        "ties": replace(
            base, acceptance_rates=[0.5] * 4, weights=[1.0, 0.5, 0.25, 2.0], budget_tokens=6
        ),
        "no budget": replace(base, budget_tokens=0),
        "no acceptance": replace(base, acceptance_rates=[0.0] * 4),
        "some zeros": replace(
            base, acceptance_rates=[0.0, 0.9, 0.8, 0.0], weights=[1.0, 0.0, 1.0, 0.0]
        ),
        "no weights": replace(base, weights=[0.0] * 4),
        "caps": replace(base, max_draft_tokens=[0, 1, 5, 2]),
        "caps below the budget": replace(base, max_draft_tokens=[1, 1, 0, 2]),
        "rates next to 1": replace(base, acceptance_rates=[1 - 1e-12, 1 - 1e-9, 1 - 2**-53, 0.5]),
    }


INSTANCES = _instances()
