"""A recipe: family, parameters and seed of one problem of the library, and the problem that it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from specopt.instances.family import Family
from specopt.models.markov_chain import TransitionMatrix
from specopt.models.problem import Problem

DIGITS = 6
"""Significant digits of the numbers of a library problem: the last bits of exp and log differ between machines."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One problem of the library.

    Parameters
    ----------
    family
        The family that it comes from.
    label
        Its name within the family.
    size
        "small" (for proofs), "paper" (as large as the paper's), "large", or "adversarial".
    seed, parameters
        Of the family.
    """

    family: Family
    label: str
    size: str
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """KIND/FAMILY/LABEL."""
        return f"{self.family.name}/{self.label}"

    def problem(self) -> Problem:
        """Return the problem, its numbers rounded."""
        return rounded(self.family.generate(seed=self.seed, **self.parameters))


def recipes_of(families: Sequence[Family]) -> Callable[..., Recipe]:
    """Return what makes a recipe from the label of a family, its own label, its size, a seed and parameters."""
    by_label = {family.label: family for family in families}

    def recipe(family: str, label: str, size: str, seed: int = 1, **parameters: Any) -> Recipe:
        return Recipe(family=by_label[family], label=label, size=size, seed=seed, parameters=parameters)

    return recipe


def rounded(problem: Problem) -> Problem:
    """Return a problem with six digits of every number that is no integer; rows of transitions still sum to one."""
    data = {name: _rounded(value) for name, value in problem.to_dict().items() if name != "name"}
    for entry in fields(problem):
        value = getattr(problem, entry.name)
        if isinstance(value, TransitionMatrix):
            data[entry.name] = [_row(row) for row in value.rows.tolist()]
    return type(problem).from_dict(data)


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
