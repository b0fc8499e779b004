"""Formulations of problems as Pyomo or CVXPY models, for use with any solver that these libraries
support.
"""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any, cast

from specopt.kinds import kind_of, names_with
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.fields import describe
from specopt.models.files import write_text
from specopt.models.problem import P, Problem, refuse_subclass
from specopt.solvers.formulation import Formulation, solution

FORMATS = ("lp", "mps")
"""File formats in which a Pyomo model can be written."""


def formulation(problem: Problem, **options: Any) -> Any:
    """Return a model of a problem: a CVXPY problem for `fair-goodput`, otherwise a Pyomo model.

    The sets, variables and constraints of the model are named as in the documentation. The
    objective of a Pyomo model is scaled. To obtain the objective of the problem, multiply the
    model's objective by `model.unit` and add `model.offset`.

    Parameters
    ----------
    problem
        Problem to formulate. A `serving-latency` model covers only one speculation length and
        mechanism; for all other kinds, the model represents the whole problem.
    options
        Options of the formulation. For `serving-latency`, these are `length`, which is the
        speculation length, and `mechanism`; see the documentation.

    Raises
    ------
    InvalidInput
        If the formulation does not have one of the options.
    Unsupported
        If the problem has no formulation, or if its model is too large.

    Examples
    --------
    >>> import specopt
    >>> problem = specopt.generate("draft-allocation/uniform", clients=3, seed=1)
    >>> len(specopt.formulation(problem).clients)
    3
    """
    found = _formulation_of(problem)
    known = list(signature(found.state).parameters)[1:]
    for name in options:
        if name not in known:
            raise InvalidInput(
                f"{name}: unknown option; options of this formulation: {', '.join(known) or 'none'}"
            )
    return found.state(problem, **options)


def plan_of(problem: Problem[P], model: Any) -> P:
    """Extract the plan from a solved model. The model may have been solved with any solver.

    Use `problem.evaluate` to compute the plan's objective.

    Parameters
    ----------
    problem
        Problem that the model represents.
    model
        Model that was returned by `formulation` and then solved.

    Raises
    ------
    InvalidInput
        If the model has no solution, or if it represents another problem.
    """
    found = _formulation_of(problem)
    try:
        return cast("P", found.read(problem, model, solution))
    except (AttributeError, KeyError):
        raise InvalidInput(
            f"model: expected a formulation of this problem, got {describe(model)}"
        ) from None


def write_formulation(problem: Problem, path: Path, form: str, **options: Any) -> None:
    """Write the model of a problem as an LP or MPS file. A failed write leaves no partial file.

    Raises
    ------
    InvalidInput
        If the format is unknown, or if the file cannot be written.
    Unsupported
        If the model is not linear, or if the problem has no formulation.
    """
    from tempfile import TemporaryDirectory

    if form not in FORMATS:
        raise InvalidInput(f"format: expected one of {', '.join(FORMATS)}, got {form!r}")
    if not _formulation_of(problem).is_linear:
        raise Unsupported(f"formulation: the program for {problem.kind} is not linear")
    from pyomo.common.log import LoggingIntercept

    # Pyomo's log messages repeat what its exceptions say
    with TemporaryDirectory() as folder, LoggingIntercept(module="pyomo"):
        target = Path(folder, f"program.{form}")
        formulation(problem, **options).write(
            str(target), format=form, io_options={"symbolic_solver_labels": True}
        )
        write_text(path, target.read_text())


def _formulation_of(problem: Problem) -> Formulation:
    if not isinstance(problem, Problem):
        raise InvalidInput(f"problem: expected a specopt problem, got {describe(problem)}")
    refuse_subclass(problem)
    found = kind_of(problem).formulation
    if found is None:
        raise Unsupported(
            f"formulation: {problem.kind} has no formulation; these kinds have one:"
            f" {names_with('formulation')}"
        )
    return found
