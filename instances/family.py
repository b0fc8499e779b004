"""Families, which are named generators of problems or workloads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe
from specopt.models.problem import Problem
from specopt.models.schema import summary_of


@dataclass(frozen=True)
class Family:
    """A named generator of problems or workloads.

    Parameters
    ----------
    name
        Name in the form KIND/FAMILY, as on the command line.
    build
        Function that generates a problem or workload. The keyword arguments of the function are the
        family's parameters and, if the result is random, a seed.
    """

    name: str
    build: Callable[..., Any]

    @property
    def kind(self) -> str:
        """Kind of problem, which is the part of the name before the slash."""
        return self.name.partition("/")[0]

    @property
    def label(self) -> str:
        """Part of the name after the slash."""
        return self.name.partition("/")[2]

    @property
    def summary(self) -> str:
        """First paragraph of the docstring of `build`."""
        return summary_of(self.build)

    @property
    def defaults(self) -> dict[str, Any]:
        """Default value of each parameter of the family, including the seed."""
        return {p.name: p.default for p in inspect.signature(self.build).parameters.values()}

    @property
    def plain(self) -> dict[str, type[Any]]:
        """Type of each parameter whose value can be written as a plain string, except the seed."""
        return {
            name: type(value)
            for name, value in self.defaults.items()
            if isinstance(value, bool | int | float | str) and name != "seed"
        }

    def generate(self, *, seed: int = 0, **parameters: Any) -> Any:
        """Return a problem or workload that depends only on the parameters and the seed.

        If `build` does not name the problem, the problem's name consists of the family's label and
        all parameters.

        Raises
        ------
        InvalidInput
            If the family has no such parameter.
        """
        known = self.defaults
        for name in parameters:
            if name not in known:
                raise InvalidInput(
                    f"{name}: {self.name} has no such parameter; its parameters: {', '.join(known)}"
                )
        if "seed" in known:
            parameters["seed"] = seed
        found = self.build(**parameters)
        if isinstance(found, Problem) and found.name is None:
            words = (
                f"{name}={value if isinstance(value, str) else describe(value)}"
                for name, value in (known | parameters).items()
            )
            # set in place, because the problem is new and a copy would be checked again
            object.__setattr__(found, "name", " ".join((self.label, *words)))
        return found


def families(problem: type[Problem], *builds: Callable[..., Any]) -> tuple[Family, ...]:
    """Return a family for each function, named after the function and the kind of problem."""
    return tuple(
        Family(f"{problem.kind}/{build.__name__.replace('_', '-')}", build) for build in builds
    )


def labelled(families: Sequence[Family], *labels: str) -> tuple[Family, ...]:
    """Return the families with the given labels, in the order of the labels."""
    by_label = {family.label: family for family in families}
    return tuple(by_label[label] for label in labels)
