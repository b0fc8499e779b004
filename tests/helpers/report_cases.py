"""Plans made by hand, and their results: what the tests of reports make pages of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specopt import Plan, Problem, Result, Status, Termination, generate

ROOT = Path(__file__).parents[2]
SWEEP = ROOT / "instances" / "data" / "measured" / "vllm-cpu-ngram.csv"

PLANS: dict[str, dict[str, Any]] = {
    "serving-latency/paper-1": {
        "speculation_length": 2,
        "batches": [[1, 0], [2]],
        "bandwidth_share": [0.3, 0.3, 0.4],
    },
    "prompt-chunking/paper-4": {"chunks": [91, 200, 600]},
    "draft-control/paper-3": {},
    "fair-goodput/paper-5": {"goodput": [], "mean_draft_tokens": [], "schedule": []},
    "draft-allocation/paper-5": {"draft_tokens": [2, 2, 2, 2, 3, 3, 3, 3]},
    "verification-batch/warm": {"batch": []},
}


def problem_and_plan(family: str) -> tuple[Problem, Plan]:
    """Return a small problem of a family and a plan for it, made by hand."""
    problem = generate(
        family, seed=1, **({"tasks": 3, "max_output": 16} if family.startswith("serving") else {})
    )
    data = dict(PLANS[family])
    if family == "draft-control/paper-3":
        data = {
            "policy": [
                {"draft_length": 2, "resolution": int(problem.resolutions[0])}  # type: ignore[attr-defined]
                for _ in problem.states  # type: ignore[attr-defined]
            ]
        }
    if family == "fair-goodput/paper-5":
        rates = [1.0 + a + a * a for a in problem.acceptance_rates.tolist()]  # type: ignore[attr-defined]
        tokens = [2] * problem.clients  # type: ignore[attr-defined]
        data = {
            "goodput": rates,
            "mean_draft_tokens": [2.0] * len(tokens),
            "schedule": [{"share": 1.0, "draft_tokens": tokens}],
        }
    return problem, problem.plan_type.from_dict(data)


def result_of(problem: Problem, plan: Plan | None, **fields: Any) -> Result:
    """Return a result of a plan, with the judge's objective."""
    objective = None if plan is None else problem.evaluate(plan).objective
    known = {
        "status": Status.FEASIBLE,
        "termination": Termination.CONVERGED,
        "method": "hand",
        "objective": objective,
    }
    return Result(kind=problem.kind, problem_sha256=problem.sha256, plan=plan, **(known | fields))
