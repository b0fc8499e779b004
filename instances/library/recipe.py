"""A recipe: family, parameters and seed of one problem of the library, and the problem that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specopt.instances.families import generate
from specopt.models.kinds import problem_type
from specopt.models.problem import Problem

DIGITS = 6
"""Significant digits of the numbers of a library problem: the last bits of exp and log differ between machines."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One problem of the library.

    Parameters
    ----------
    family
        KIND/FAMILY.
    label
        Its name within the family.
    size
        "small" (for proofs), "paper" (as large as the paper's), "large", or "adversarial".
    seed, parameters
        Of the family.
    """

    family: str
    label: str
    size: str
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """KIND/FAMILY/LABEL."""
        return f"{self.family}/{self.label}"

    def problem(self) -> Problem:
        """Return the problem, its numbers rounded."""
        return rounded(generate(self.family, seed=self.seed, **self.parameters))


def rounded(problem: Problem) -> Problem:
    """Return a problem with six digits of every number that is no integer; rows of transitions still sum to one."""
    data = {name: _rounded(value) for name, value in problem.to_dict().items() if name not in ("name", "transition")}
    if "transition" in problem.to_dict():
        data["transition"] = [_row(row) for row in problem.to_dict()["transition"]]
    return problem_type(problem.kind).from_dict(data)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    return value


def _row(row: list[float]) -> list[float]:
    """Round to decimals; what is over or missing goes to the largest entry."""
    whole = np.round(np.array(row) * 10**DIGITS).astype(np.int64)
    whole[int(np.argmax(whole))] += 10**DIGITS - int(whole.sum())
    return [int(part) / 10**DIGITS for part in whole]
