"""Experiments: problems, plans and predictions of each kind, and the numbers from each play."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from specopt.api.solve import solve
from specopt.models.arguments import one_of
from specopt.models.errors import Unsupported
from specopt.models.fields import parse
from specopt.models.problem import Plan, Problem

P = TypeVar("P", bound=Plan)

KINDS = tuple(sorted(module.name.replace("_", "-") for module in iter_modules(__path__)))
"""Kinds of problems whose plans can be played, with one module each."""


def experiment(kind: str) -> Any:
    """Return the module of a kind.

    Raises
    ------
    InvalidInput
        If no module plays this kind.
    """
    one_of("kind", kind, KINDS)
    return import_module(f"{__name__}.{kind.replace('-', '_')}")


def settings_of(kind: str, pair: str, values: Mapping[str, Any]) -> Any:
    """Return the settings of a kind for the pair, with some of them replaced.

    Raises
    ------
    InvalidInput
        If there is no such setting, or if it cannot have this value.
    """
    module = experiment(kind)
    defaults = module.TINY if pair == "tiny" else module.Settings()
    return parse(module.Settings, dataclasses.asdict(defaults) | dict(values), "settings")


def plans_of_methods(
    problems: Sequence[Problem], plan_type: type[P], methods: Iterable[str], seed: int
) -> list[tuple[list[str], P]]:
    """Return the plan of each method for the first problem that it accepts. Each plan occurs once,
    with all methods that found it.
    """
    found: list[tuple[list[str], P]] = []
    for method in methods:
        for problem in problems:
            try:
                plan = solve(problem, method, seed=seed).plan
            except Unsupported:
                continue
            break
        else:
            continue
        assert isinstance(plan, plan_type), "problems that are played have plans"
        same = next((names for names, other in found if other == plan), None)
        if same is None:
            found.append(([method], plan))
        else:
            same.append(method)
    return found
