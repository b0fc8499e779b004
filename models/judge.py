"""The judge, which checks results independently of the methods that computed them.

The judge computes a plan's objective value and constraint violations from the problem's data alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.late import Shown
from specopt.models.problem import TOLERANCE, Plan, Problem, refuse_subclass
from specopt.models.result import Result


@dataclass(frozen=True)
class Report(Shown):
    """The judge's report on a result, computed only from the problem's data and the plan.

    Parameters
    ----------
    objective
        Recomputed objective value, or None if the plan does not match the problem.
    terms
        Parts of the recomputed objective value. The mapping is empty if the plan does not match the
        problem.
    violations
        Messages about violated constraints.
    feasible
        Whether the plan violates no constraint.
    matches
        Whether the objective value claimed by the result equals the recomputed value within a
        relative tolerance of 1e-9.
    size
        Sum of the absolute values of the objective's terms.
    """

    objective: float | Any  # None if the plan does not match the problem
    violations: list[str]
    terms: dict[str, Any] = field(default_factory=dict)
    matches: bool = True
    size: float = 0.0

    @property
    def feasible(self) -> bool:
        """Whether the plan violates no constraint."""
        return not self.violations


class Proof(NamedTuple):
    """The result of comparing a claimed bound with a plan's objective value.

    Parameters
    ----------
    bound
        Proven bound as reported in results, or None if nothing is proven.
    gap
        Proven relative gap as reported in results, or None if nothing is proven.
    refuted
        Whether the plan refutes the claimed bound, because its objective value is better than the
        bound by more than rounding errors.
    """

    bound: float | None = None
    gap: float | None = None
    refuted: bool = False


def proof_of(
    kind: type[Problem],
    objective: float,
    bound: float | None,
    tolerance: float = TOLERANCE,
    scale: Sequence[float] = (),
    size: float = 0.0,
) -> Proof:
    """Compare a claimed bound with the objective value of a feasible plan.

    Parameters
    ----------
    kind
        Problem class.
    objective
        Objective value of the plan, computed by the judge.
    bound
        Claimed bound, or None if there is none.
    tolerance
        Maximum relative gap that is attributed to rounding and reported as 0.
    scale
        Parameters of the objective that `Problem.distance` requires.
    size
        Sum of the absolute values of the objective's terms, which `Problem.distance` requires.

    Returns
    -------
    Proof
        The proven bound and gap, and whether the plan refutes the claimed bound.
    """
    if bound is None:
        return Proof()
    crossed = bound > objective if kind.sense_of(scale) == "minimize" else bound < objective
    distance = kind.distance(objective, bound, scale, size)
    if distance <= tolerance:
        return Proof(objective if crossed else bound, 0.0)
    if crossed or math.isnan(distance):  # NaN: outside the objective's range, not a bound
        return Proof(refuted=crossed)
    return Proof(bound, distance if math.isfinite(distance) else None)


def verify(problem: Problem, result: Result | Plan) -> Report:
    """Check a result's plan using only the problem's data, and return a report.

    Raises
    ------
    InvalidInput
        If the result belongs to another problem or has no plan, or if the problem is an instance of
        a user-defined subclass of a problem class.
    """
    if not isinstance(result, Result | Plan):
        raise InvalidInput(f"result: expected a result or a plan, got {describe(result)}")
    refuse_subclass(problem)
    plan = result if isinstance(result, Plan) else result.plan
    if isinstance(result, Result):
        if result.kind != problem.kind:
            raise InvalidInput(
                f"kind: expected {problem.kind!r}, the kind of the problem, got {result.kind!r}"
            )
        if result.problem_sha256 not in ("", problem.sha256):
            raise InvalidInput("problem_sha256: the result belongs to another problem")
    if plan is None:
        raise InvalidInput("plan: the result has no plan")
    if not isinstance(plan, problem.plan_type):
        raise InvalidInput(
            f"plan: expected {problem.plan_type.__name__}, got {type(plan).__name__}"
        )
    violations = problem.violations(plan)
    try:
        evaluation = problem.evaluate(plan)
    except InvalidInput:
        return Report(None, violations, matches=False)
    claimed = result.objective if isinstance(result, Result) else None
    size = abs(evaluation.objective) or evaluation.size
    matches = claimed is None or abs(claimed - evaluation.objective) <= TOLERANCE * size
    return Report(evaluation.objective, violations, evaluation.terms, matches, evaluation.size)
