"""A named family of problems."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specopt.models.errors import InvalidInput
from specopt.models.problem import Problem
from specopt.models.schema import summary_of


@dataclass(frozen=True)
class Family:
    """A named family of problems, or of workloads.

    Parameters
    ----------
    name
        Name KIND/FAMILY, as on the command line.
    build
        Function of the family's parameters and the seed, all keyword arguments.
    """

    name: str
    build: Callable[..., Any]

    @property
    def kind(self) -> str:
        """The part of the name before the slash."""
        return self.name.partition("/")[0]

    @property
    def label(self) -> str:
        """The part of the name after the slash."""
        return self.name.partition("/")[2]

    @property
    def summary(self) -> str:
        """First paragraph of the family's documentation."""
        return summary_of(self.build)

    @property
    def defaults(self) -> dict[str, Any]:
        """Default value of each parameter of the family, including the seed."""
        return {p.name: p.default for p in inspect.signature(self.build).parameters.values()}

    @property
    def plain(self) -> dict[str, type[Any]]:
        """Types of the parameters that text can express, without the seed."""
        return {
            name: type(value)
            for name, value in self.defaults.items()
            if isinstance(value, bool | int | float | str) and name != "seed"
        }

    def generate(self, *, seed: int = 0, **parameters: Any) -> Any:
        """Return a problem or a workload, which depends only on the parameters and the seed.

        Raises
        ------
        InvalidInput
            If the family has no such parameter.
        """
        known = self.defaults
        for name in parameters:
            if name not in known:
                raise InvalidInput(
                    f"{name}: {self.name} has no such parameter; it has {', '.join(known)}"
                )
        return self.build(**({"seed": seed} if "seed" in known else {}), **parameters)


def families(problem: type[Problem], *builds: Callable[..., Any]) -> tuple[Family, ...]:
    """Return the families of a kind of problem, each under the name of its function."""
    return tuple(
        Family(f"{problem.kind}/{build.__name__.replace('_', '-')}", build) for build in builds
    )


def labelled(families: Sequence[Family], *labels: str) -> tuple[Family, ...]:
    """Return the families with the given labels, in the order of the labels."""
    by_label = {family.label: family for family in families}
    return tuple(by_label[label] for label in labels)
