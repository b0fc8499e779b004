"""Small instances of `draft-stopping` for the conformance suite."""

from __future__ import annotations

from specopt import DraftStoppingProblem, Problem


def _instances() -> dict[str, Problem]:
    """Small instances of `draft-stopping`: one and some classes and bins, free and dear drafts,
    sure and hopeless.
    """
    base = {
        "format": "specopt/1",
        "kind": "draft-stopping",
        "max_draft_tokens": 4,
        "draft_seconds_per_token": 0.02,
        "round_seconds": 0.15,
        "rounds": [{"probability": 1.0, "acceptance_rate": 0.75}],
        "scores": {"accepted": [0.2, 0.8], "first_rejection": [0.6, 0.4], "after": [0.5, 0.5]},
    }
    mixed = [
        {"probability": 0.5, "acceptance_rate": 0.95},
        {"probability": 0.5, "acceptance_rate": 0.3},
    ]
    drifting = [
        {"probability": 0.25, "acceptance_rate": [0.9, 0.8, 0.5, 0.2]},
        {"probability": 0.75, "acceptance_rate": [0.2, 0.9, 0.9, 0.9]},
    ]
    three = {
        "accepted": [0.1, 0.3, 0.6],
        "first_rejection": [0.5, 0.3, 0.2],
        "after": [0.4, 0.2, 0.4],
    }
    silent = {name: [1.0] for name in ("accepted", "first_rejection", "after")}
    sure = {"accepted": [0.0, 1.0], "first_rejection": [1.0, 0.0], "after": [1.0, 0.0]}
    cases = {
        "one class": base,
        "easy and hard": base | {"rounds": mixed},
        "drifting": base | {"rounds": drifting, "scores": three},
        "one token": base | {"max_draft_tokens": 1},
        "one bin": base | {"rounds": mixed, "scores": silent},
        "scores that tell": base | {"rounds": mixed, "scores": sure},
        "free drafts": base | {"rounds": mixed, "draft_seconds_per_token": 0.0},
        "dear drafts": base | {"rounds": mixed, "draft_seconds_per_token": 10.0},
        "rounds by length": base
        | {"rounds": mixed, "round_seconds": [0.05, 0.085, 0.099, 0.099, 0.12]},
        "longer rounds are shorter": base
        | {"rounds": mixed, "round_seconds": [0.3, 0.2, 0.25, 0.1, 0.1]},
        "hopeless": base | {"rounds": [{"probability": 1.0, "acceptance_rate": 0.0}]},
        "certain": base | {"rounds": [{"probability": 1.0, "acceptance_rate": 1.0}]},
        "a class that never occurs": base
        | {"rounds": [*mixed, {"probability": 0.0, "acceptance_rate": 1.0}]},
    }
    return {name: DraftStoppingProblem.from_dict(data) for name, data in cases.items()}


INSTANCES = _instances()
