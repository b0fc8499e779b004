"""The judge: what a plan is worth, and what it violates, from the problem's data alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from specopt.models.errors import InvalidInput
from specopt.models.problem import TOLERANCE, Plan, Problem
from specopt.models.result import Result


@dataclass(frozen=True)
class Report:
    """What the judge says of a result, from the problem's data alone.

    Parameters
    ----------
    objective, terms
        Recomputed objective and its parts; None and empty if the plan makes no sense for the problem.
    violations
        One sentence per violated constraint.
    feasible
        Whether there are none.
    matches
        Whether the objective that the result claims is the recomputed one (relative tolerance 1e-9).
    """

    objective: float | None
    violations: list[str]
    terms: dict[str, float] = field(default_factory=dict)
    matches: bool = True

    @property
    def feasible(self) -> bool:
        """Whether the plan violates nothing."""
        return not self.violations


def verify(problem: Problem, result: Result | Plan) -> Report:
    """Judge a result's plan from the problem's data alone.

    Raises
    ------
    InvalidInput
        If the result belongs to another problem, or holds no plan.
    """
    plan = result if isinstance(result, Plan) else result.plan
    if isinstance(result, Result):
        if result.kind != problem.kind:
            raise InvalidInput(f"kind: expected {problem.kind!r}, as the problem, got {result.kind!r}")
        if result.problem_sha256 not in ("", problem.sha256):
            raise InvalidInput("problem_sha256: the result belongs to another problem")
    if plan is None:
        raise InvalidInput("plan: expected a plan, got none")
    if not isinstance(plan, problem.plan_type):
        raise InvalidInput(f"plan: expected {problem.plan_type.__name__}, got {type(plan).__name__}")
    violations = problem.violations(plan)
    try:
        evaluation = problem.evaluate(plan)
    except InvalidInput:
        return Report(None, violations, matches=False)
    claimed = result.objective if isinstance(result, Result) else None
    size = abs(evaluation.objective) or evaluation.size
    matches = claimed is None or abs(claimed - evaluation.objective) <= TOLERANCE * size
    return Report(evaluation.objective, violations, evaluation.terms, matches)
