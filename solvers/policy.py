"""User-defined policies: one protocol in plain Python for the simulators of all kinds.

specopt's own policies are compiled into the simulators. Any other one is played by the same event
loops as plain Python, which call the policy where they decide: the same luck, some hundred times
slower.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import Ints, describe


class Policy(ABC):
    """Base class of policies, which make the decisions of a simulated system. A subclass implements
    `decide`.

    What `decide` and `learn` are given depends on the kind: `specopt.solvers.<kind>.simulate` has a
    `State` and describes the decision that it expects.

    Examples
    --------
    >>> class Everything(Policy):
    ...     name = "everything"
    ...     def decide(self, state):
    ...         return [state.budget_tokens // len(state.caps)] * len(state.caps)
    """

    name: ClassVar[str] = "own"

    def start(self, world: Any, seed: int) -> None:  # noqa: B027  (most have nothing to forget)
        """Begin a replication and discard everything learned in the previous one."""

    @abstractmethod
    def decide(self, state: Any) -> Any:
        """Return the decision in a state."""

    def learn(self, outcome: Any) -> None:  # noqa: B027  (some learn nothing)
        """Learn from the outcome of the last decision."""


def as_policy(policy: object, named: Mapping[str, Callable[[], Any]], *classes: type) -> Any:
    """Return a policy, given as an instance of one of the classes or by its name.

    Raises
    ------
    InvalidInput
        If it is neither a name nor of one of the classes.
    """
    if isinstance(policy, str) and policy in named:
        return named[policy]()
    if not isinstance(policy, classes):
        names = ", ".join([*named, *(one.__name__ for one in classes)])
        raise InvalidInput(f"policy: expected one of {names}, got {describe(policy)}")
    return policy


def settings_of(policy: object) -> dict[str, Any]:
    """Return the options of a policy, by name."""
    return dataclasses.asdict(policy) if dataclasses.is_dataclass(policy) else {}  # type: ignore[arg-type]


def refused(policy: Policy, expected: str, decision: object) -> InvalidInput:
    """Return the error of a policy whose decision is not allowed."""
    return InvalidInput(f"policy {policy.name}: expected {expected}, got {describe(decision)}")


def decided(policy: Policy, state: Any, *rules: tuple[str, Callable[[Any], Any]]) -> Ints:
    """Return the decision of a policy in a state as integers.

    Parameters
    ----------
    policy, state
        Which policy decides, and where.
    rules
        What is expected, in words, and a check of the decision as an array.

    Raises
    ------
    InvalidInput
        If the decision is not of whole numbers, or fails a check.
    """
    decision = policy.decide(state)
    found = np.asarray([] if decision is None else decision)
    found = found if found.size else found.astype(np.int64)
    for words, holds in rules:
        if found.dtype.kind not in "iu" or not holds(found):
            raise refused(policy, words, decision)
    return found


def twin(
    policy: Policy, world: Any, seed: int, kernel: Any, **hooks: Callable[..., Any]
) -> Callable[..., Any]:
    """Return an event loop as plain Python around a policy, which begins a replication.

    Parameters
    ----------
    policy, world, seed
        What plays, where, and the seed of the replication.
    kernel
        The compiled event loop.
    hooks
        Functions in the place of kernels that the loop calls, by their names.
    """
    from specopt.solvers.kernels.kernel import with_fields

    policy.start(world, seed)
    play = _plain(kernel, hooks)

    def played(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # of random numbers
            return play(*map(with_fields, arguments))

    return played


def _plain(kernel: Any, hooks: Mapping[str, Any]) -> Any:
    """Return a kernel as plain Python, with functions in the place of some that it calls, by their
    names.
    """
    known: dict[int, Any] = {}

    def of(dispatcher: Any) -> Any:
        function = dispatcher.py_func
        if id(function) not in known:
            own = dict(function.__globals__)
            known[id(function)] = FunctionType(
                function.__code__, own, function.__name__, function.__defaults__
            )
            own |= {
                name: of(value)
                for name, value in own.items()
                if getattr(value, "py_func", None) is not None
            }
            own |= {name: hook for name, hook in hooks.items() if name in own}
        return known[id(function)]

    return of(kernel)
