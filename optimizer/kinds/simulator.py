"""How plans and policies of a kind are played: what `simulate` calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from specopt.instances.family import Family
from specopt.solvers.simulation import Simulation

_COMMON = {"seed", "replications", "callback"}


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """A simulator of plans, or of policies on workloads.

    Parameters
    ----------
    world
        What a plan or policy is played on: a type of problem or workload.
    module
        Whose function `simulate` it is, loaded when something is played.
    policies
        The names that it takes besides plans.
    workloads
        The families of worlds that these policies meet.
    """

    world: type[Any]
    module: str
    policies: tuple[str, ...] = ()
    workloads: tuple[Family, ...] = ()

    @property
    def play(self) -> Callable[..., Simulation]:
        """The function of a world, a plan or policy and, by keyword, seed, replications, callback and options."""
        found: Callable[..., Simulation] = import_module(self.module).simulate
        return found

    @property
    def options(self) -> tuple[str, ...]:
        """Keywords that this simulator has of its own."""
        keywords = (p.name for p in inspect.signature(self.play).parameters.values() if p.kind is p.KEYWORD_ONLY)
        return tuple(name for name in keywords if name not in _COMMON)

    @property
    def settings(self) -> dict[str, Any]:
        """The types of those options that text can express."""
        hints = get_type_hints(self.play)
        return {name: hints[name] for name in self.options if _is_plain(hints[name])}


def _is_plain(hint: Any) -> bool:
    """Return whether text can express a type."""
    if get_origin(hint) is Literal or hint in (bool, int, float, str):
        return True
    members = get_args(hint)
    return NoneType in members and all(one is NoneType or _is_plain(one) for one in members)
