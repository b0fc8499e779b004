"""Consistency checks for results that are read from files, and the wording of their certificates.

A result file can be edited by hand. Its claims (status, bound and gap) are therefore checked
against its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal

from specopt.api.solve import method_named
from specopt.models.errors import SpecoptError
from specopt.models.judge import Proof, Report, proof_of
from specopt.models.problem import TOLERANCE, Problem, problem_type
from specopt.models.result import Result, Status, Termination
from specopt.solvers.method import Method

CLOSE = 1e-6
"""Relative tolerance within which a bound and an objective count as close.

A claimed gap below this tolerance is used only if bound and objective are in fact close; see
`without_refuted_claims`.
"""


def without_refuted_claims(
    result: Result, problem: Problem | None = None, report: Report | None = None
) -> tuple[Result, list[str]]:
    """Remove claims that are refuted by the numbers in the same result.

    Return the corrected result and a list of sentences, one per refuted claim. The status, the
    bound and the gap of the corrected result follow from its objective and the claimed bound.

    Parameters
    ----------
    result
        Result as read from a file.
    problem
        Problem of the result; None if unknown. If the problem is unknown and its data are needed
        to compute the gap, the claimed gap is used. A claimed gap close to 0 is nevertheless
        dropped if bound and objective are not close.
    report
        The judge's report on the plan. The objective in the report replaces the claimed objective.
        If the report is None, the claimed objective is used.
    """
    kind = problem_type(result.kind)
    if result.plan is None:
        status = Status.INFEASIBLE if result.status is Status.INFEASIBLE else Status.NONE
        return replace(result, status=status, objective=None, terms={}, gap=None), []
    refuted = []
    if result.status is Status.INFEASIBLE:
        refuted.append("The file contains a plan, but states that no plan exists.")
    if report is not None:
        result = replace(result, objective=report.objective, terms=report.terms)
    if result.objective is None:
        return replace(result, status=Status.FEASIBLE, gap=None), refuted
    scale = problem.scale if problem else ()
    size = report.size if report else 0.0
    method = method_of_result(result)
    tolerance = TOLERANCE if method is None else method.tolerance
    proof = proof_of(kind, result.objective, result.bound, tolerance, scale, size)
    has_scale = problem is not None or kind.scale is Problem.scale
    if proof.refuted and (problem is not None or not _has_either_sense(kind)):
        refuted.append(
            f"The bound of the file is refuted: it states that {every_plan_has(kind, scale)}"
            f" {result.bound:.9g}, but this plan has {result.objective:.9g}."
        )
    elif not has_scale and result.bound not in (None, result.objective):
        is_close = math.isclose(result.bound, result.objective, rel_tol=CLOSE)
        is_used = result.gap is not None and result.gap >= 0.0 and (result.gap > CLOSE or is_close)
        proof = Proof(result.bound, result.gap if is_used else None)
    if (
        has_scale
        and result.status is Status.OPTIMAL
        and proof.gap != 0.0
        and result.termination is not Termination.GAP
    ):
        refuted.append("The file calls the plan optimal, but its numbers do not prove this.")
    status = Status.OPTIMAL if proof.gap == 0.0 else Status.FEASIBLE
    return replace(result, status=status, bound=proof.bound, gap=proof.gap), refuted


def method_of_result(result: Result) -> type[Method] | None:
    """Return the method that produced a result, or None if the method is not installed."""
    try:
        return method_named(result.kind, result.method)
    except SpecoptError:  # the plug-in of the method has changed
        return None


def every_plan_has(kind: type[Problem], scale: Sequence[float] = ()) -> str:
    """Return the phrase that introduces a bound on the objective of every plan for a problem.

    The wording depends on whether problems of the kind are minimised or maximised.

    Examples
    --------
    >>> kinds = ("serving-latency", "draft-allocation", "placement")
    >>> for kind in kinds:
    ...     print(every_plan_has(problem_type(kind)))
    every plan has an objective of at least
    every plan has an objective of at most
    the bound on every plan is
    """
    if not scale and _has_either_sense(kind):
        return "the bound on every plan is"
    side = "least" if kind.sense_of(scale) == "minimize" else "most"
    return f"every plan has an objective of at {side}"


def _has_either_sense(kind: type[Problem]) -> bool:
    """Return whether a kind contains both minimisation problems and maximisation problems."""
    return "sense_of" in vars(kind)


def certificate(result: Result, problem: Problem | None = None) -> list[str]:
    """Return a result's certificate: sentences that state how much better another plan could be.

    Parameters
    ----------
    result
        Result to describe. The stored gap is used and not recomputed.
    problem
        Problem of the result; None if unknown.
    """
    if result.status is Status.INFEASIBLE:
        return [f"There is no plan: {result.explanation or 'the problem is proven infeasible'}."]
    if result.plan is None:
        return [f"There is no plan to certify: {result.explanation or 'none was found'}."]
    if result.objective is None:
        return ["Nothing is proven: the file contains no objective of its plan."]
    method = method_of_result(result)
    kind = problem_type(result.kind)
    found = problem or kind
    measure = "" if found.worth_label == "objective" else f", by the {found.worth_label}"
    if result.bound is None:
        said = f"Nothing is proven: {result.method} has no valid bound; another plan may be better"
    else:
        bound = f"{every_plan_has(kind, problem.scale if problem else ())} {result.bound:.9g}"
        why = f"{bound}, and this plan has {result.objective:.9g}: {found.objective_label}"
        if result.gap is None:
            said = f"It is not known how much better another plan can be{measure}: {why}"
        elif result.gap == 0.0:
            said = f"No plan is better, because {why}"
        else:
            said = f"No plan can be more than {at_most(result.gap)} better{measure}, because {why}"
    sentences = [f"{said}."]
    if method is not None:
        sentences.append(f"Guarantee of method {result.method}: {method.guarantee}.")
    return sentences


def at_most(share: float) -> str:
    """Format a share as a percentage with two significant digits, rounded up.

    Examples
    --------
    >>> at_most(0.0008), at_most(0.12341), at_most(1.0), at_most(3.01e-8)
    ('0.08 %', '13 %', '100 %', '0.0000031 %')
    """
    exact = Decimal(repr(100.0 * share)) if share < 1e300 else Decimal(share) * 100
    if not exact:
        return "0 %"
    digits = Decimal(1).scaleb(exact.adjusted() - 1)
    return f"{exact.quantize(digits, ROUND_CEILING).normalize():f} %"
