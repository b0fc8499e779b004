"""What results claim: in words, and compared with their own numbers, because anyone can write a
file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal

from specopt.api.solve import method_named
from specopt.models.errors import SpecoptError
from specopt.models.judge import Report, proof_of
from specopt.models.problem import TOLERANCE, Problem, problem_type
from specopt.models.result import Result, Status, Termination
from specopt.solvers.method import Method


def held_against(
    result: Result, problem: Problem | None = None, report: Report | None = None
) -> tuple[Result, list[str]]:
    """Return a result whose status, bound and gap follow from its numbers, and which of its claims
    these refute.

    Parameters
    ----------
    result
        As it was read.
    problem, report
        Its problem, and what the judge says of its plan, whose objective counts then. Without them
        the objective is taken as claimed; where gaps are taken on something that only the problem
        says, there is none then.
    """
    kind = problem_type(result.kind)
    if result.plan is None:
        status = Status.INFEASIBLE if result.status is Status.INFEASIBLE else Status.NONE
        return replace(result, status=status, objective=None, terms={}, gap=None), []
    refuted = []
    if result.status is Status.INFEASIBLE:
        refuted.append("The file says that there is no plan, and holds one.")
    if report is not None:
        result = replace(result, objective=report.objective, terms=report.terms)
    if result.objective is None:
        return replace(result, status=Status.FEASIBLE, gap=None), refuted
    scale, size = problem.scale if problem else (), report.size if report else 0.0
    method = method_of_result(result)
    tolerance = TOLERANCE if method is None else method.tolerance
    proof = proof_of(kind, result.objective, result.bound, tolerance, scale, size)
    if proof.refuted:
        numbers = (
            f"{every_plan_has(kind, scale)} {result.bound:.9g}, and this one has"
            f" {result.objective:.9g}"
        )
        refuted.append(f"The bound of the file is refuted: it says that {numbers}.")
    if problem is None and kind.worth_label != "objective" and proof.bound != result.objective:
        proof = proof._replace(gap=None)
    elif (
        result.status is Status.OPTIMAL
        and proof.gap != 0.0
        and result.termination is not Termination.GAP
    ):
        refuted.append("The file calls the plan optimal; its numbers do not prove that.")
    status = Status.OPTIMAL if proof.gap == 0.0 else Status.FEASIBLE
    return replace(result, status=status, bound=proof.bound, gap=proof.gap), refuted


def method_of_result(result: Result) -> type[Method] | None:
    """Return the method that a result is of, if it is here."""
    try:
        return method_named(result.kind, result.method)
    except SpecoptError:  # a plug-in that is not what it was
        return None


def every_plan_has(kind: type[Problem], scale: Sequence[float] = ()) -> str:
    """Return the words that come before a bound on the plans of a kind, or of its problems of a
    scale.

    Examples
    --------
    >>> kinds = ("serving-latency", "draft-allocation")
    >>> tuple(every_plan_has(problem_type(kind)) for kind in kinds)
    ('every plan has at least', 'every plan has at most')
    """
    return f"every plan has {'at least' if kind.sense_of(scale) == 'minimize' else 'at most'}"


def certificate(result: Result, problem: Problem | None = None) -> list[str]:
    """Return the sentences that say how much better than a result's plan any other plan can be, and
    why.

    Parameters
    ----------
    result
        Its gap is used as it stands.
    problem
        Its problem, if it is known.
    """
    if result.status is Status.INFEASIBLE:
        return [f"There is no plan: {result.explanation or 'the problem is proven infeasible'}."]
    if result.plan is None:
        return [f"There is no plan to certify: {result.explanation or 'none was found'}."]
    if result.objective is None:
        return ["Nothing is proven: the file gives no objective of its plan."]
    method, kind = method_of_result(result), problem_type(result.kind)
    promise = (
        [] if method is None else [f"What the method {result.method} promises: {method.guarantee}."]
    )
    if result.bound is None:
        return [
            (
                f"Nothing is proven: {result.method} gave no bound that holds; another plan may be"
                " better."
            ),
            *promise,
        ]
    bound = f"{every_plan_has(kind, problem.scale if problem else ())} {result.bound:.9g}"
    why, label = (
        f"{bound} and this one has {result.objective:.9g}",
        (problem or kind).objective_label,
    )
    if result.gap == 0.0:
        return [f"No plan is better, because {why}: {label}.", *promise]
    measure = "" if kind.worth_label == "objective" else f", by the {kind.worth_label}"
    if result.gap is None:
        return [
            f"How much better another plan can be is not known{measure}: {why}: {label}.",
            *promise,
        ]
    return [
        f"No plan can be more than {at_most(result.gap)} better{measure}, because {why}: {label}.",
        *promise,
    ]


def at_most(share: float) -> str:
    """Return a share as a percentage of two digits that is no less.

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
