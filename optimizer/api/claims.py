"""What a result of a file claims, held against its own numbers: a file says what its author likes."""

from __future__ import annotations

from dataclasses import replace

from specopt.api.solve import method_named
from specopt.models.errors import SpecoptError
from specopt.models.judge import Report, proof_of
from specopt.models.problem import TOLERANCE, Problem, problem_type
from specopt.models.result import Result, Status, Termination
from specopt.solvers.method import Method


def held_against(
    result: Result, problem: Problem | None = None, report: Report | None = None
) -> tuple[Result, list[str]]:
    """Return a result whose status, bound and gap follow from its numbers, and which of its claims these refute.

    Parameters
    ----------
    result
        As it was read.
    problem, report
        Its problem, and what the judge says of its plan, whose objective counts then. Without them the objective is
        taken as claimed; where gaps are taken on something that only the problem says, there is none then.
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
        word = "at least" if kind.sense_of(scale) == "minimize" else "at most"
        numbers = f"every plan has {word} {result.bound:.9g}, and this one has {result.objective:.9g}"
        refuted.append(f"The bound of the file is refuted: it says that {numbers}.")
    if problem is None and kind.worth_label != "objective" and proof.bound != result.objective:
        proof = proof._replace(gap=None)
    elif result.status is Status.OPTIMAL and proof.gap != 0.0 and result.termination is not Termination.GAP:
        refuted.append("The file calls the plan optimal; its numbers do not prove that.")
    status = Status.OPTIMAL if proof.gap == 0.0 else Status.FEASIBLE
    return replace(result, status=status, bound=proof.bound, gap=proof.gap), refuted


def method_of_result(result: Result) -> type[Method] | None:
    """Return the method that a result is of, if it is here."""
    try:
        return method_named(result.kind, result.method)
    except SpecoptError:  # a plug-in that is not what it was
        return None
