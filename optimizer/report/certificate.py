"""What a certificate says, in words: how much better any other plan can be, and why."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from specopt.models.problem import Problem
from specopt.models.result import Result, Status


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


def certificate(problem: type[Problem], result: Result, guarantee: str | None) -> list[str]:
    """Return the sentences of a certificate.

    Parameters
    ----------
    problem
        The kind of problem.
    result
        What is certified; its gap is taken as it stands.
    guarantee
        What the method promises; None where it is not known here.
    """
    if result.status is Status.INFEASIBLE:
        return [f"There is no plan: {result.explanation or 'the problem is proven infeasible'}."]
    if result.plan is None:
        return [f"There is no plan to certify: {result.explanation or 'none was found'}."]
    if result.objective is None:
        return ["Nothing is proven: the file gives no objective of its plan."]
    promise = [] if guarantee is None else [f"What the method {result.method} promises: {guarantee}."]
    if result.bound is None:
        return [f"Nothing is proven: {result.method} gave no bound that holds; another plan may be better.", *promise]
    word = "at least" if problem.sense == "minimize" else "at most"
    because = f"because every plan has {word} {result.bound:.9g} and this one has {result.objective:.9g}"
    if result.gap == 0.0:
        return [f"No plan is better, {because}: {problem.objective_label}.", *promise]
    measure = "" if problem.worth_label == "objective" else f", by the {problem.worth_label}"
    if result.gap is None:
        return [f"How much better another plan can be is not known{measure}: {because[8:]}.", *promise]
    words = f"No plan can be more than {at_most(result.gap)} better{measure}, {because}: {problem.objective_label}."
    return [words, *promise]
