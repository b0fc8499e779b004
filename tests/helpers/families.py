"""Problems of families, as the class of their kind."""

from __future__ import annotations

from typing import Any, TypeVar

from specopt import Problem, generate

P = TypeVar("P", bound=Problem)


def problem_of(kind: type[P], family: str, **parameters: Any) -> P:
    """Return a problem of a family, named without its kind."""
    problem = generate(f"{kind.kind}/{family}", **parameters)
    assert isinstance(problem, kind)
    return problem
