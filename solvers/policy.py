"""Policies of one's own: one protocol for the simulators of all kinds, in plain Python.

specopt's own policies are compiled into the simulators. Any other one is played by the same event loops as plain
Python, which call the policy where they decide: the same luck, some hundred times slower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import FunctionType
from typing import Any, ClassVar

from specopt.models.errors import InvalidInput
from specopt.models.fields import describe


class Policy(ABC):
    """How a simulated system decides; a subclass writes `decide`.

    What `decide` and `learn` are given depends on the kind: `specopt.solvers.<kind>.simulate` has a `State` and says
    what it expects in return.

    Examples
    --------
    >>> class Everything(Policy):
    ...     name = "everything"
    ...     def decide(self, state):
    ...         return [state.budget_tokens // len(state.caps)] * len(state.caps)
    """

    name: ClassVar[str] = "own"

    def start(self, world: Any, seed: int) -> None:  # noqa: B027  (most have nothing to forget)
        """Begin a replication: forget what was learned in the one before."""

    @abstractmethod
    def decide(self, state: Any) -> Any:
        """Return the decision in a state."""

    def learn(self, outcome: Any) -> None:  # noqa: B027  (some learn nothing)
        """Take in what became of the last decision."""


def refused(policy: Policy, expected: str, decision: object) -> InvalidInput:
    """Return the error of a policy that decides what it may not."""
    return InvalidInput(f"policy {policy.name}: expected {expected}, got {describe(decision)}")


def plain(kernel: Any, hooks: Mapping[str, Any]) -> Any:
    """Return a kernel as plain Python, with functions in the place of some that it calls, by their names."""
    known: dict[int, Any] = {}

    def of(dispatcher: Any) -> Any:
        function = dispatcher.py_func
        if id(function) not in known:
            own = dict(function.__globals__)
            known[id(function)] = FunctionType(function.__code__, own, function.__name__, function.__defaults__)
            own |= {name: of(value) for name, value in own.items() if getattr(value, "py_func", None) is not None}
            own |= {name: hook for name, hook in hooks.items() if name in own}
        return known[id(function)]

    return of(kernel)
