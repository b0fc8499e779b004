"""User-defined policies: a plain Python interface to the simulators of all problem kinds.

The policies of specopt are compiled into the simulators. For any other policy, the same event loops
run as plain Python and call the policy at every decision. These loops use the same random numbers,
but are about a hundred times slower.
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
    """Base class of policies, which make the decisions of a simulated system.

    A subclass implements `decide`. The arguments of `decide` and `learn` depend on the problem
    kind. The module `specopt.solvers.<kind>.simulate` defines the class `State` and describes the
    expected decision.

    Examples
    --------
    >>> class Everything(Policy):
    ...     name = "everything"
    ...     def decide(self, state):
    ...         return [state.budget_tokens // len(state.caps)] * len(state.caps)
    """

    name: ClassVar[str] = "own"

    def start(self, world: Any, seed: int) -> None:  # noqa: B027  (most policies have no state)
        """Begin a replication, and discard everything learned in the previous replication."""

    @abstractmethod
    def decide(self, state: Any) -> Any:
        """Return the decision for a state."""

    def learn(self, outcome: Any) -> None:  # noqa: B027  (optional)
        """Learn from the outcome of the last decision."""


def as_policy(policy: object, named: Mapping[str, Callable[[], Any]], *classes: type) -> Any:
    """Return a policy that is given by name or as an instance of one of the classes.

    Raises
    ------
    InvalidInput
        If the policy is neither a known name nor an instance of one of the classes.
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
    """Return the exception to raise if a policy makes an invalid decision."""
    return InvalidInput(f"policy {policy.name}: expected {expected}, got {describe(decision)}")


def decided(policy: Policy, state: Any, *rules: tuple[str, Callable[[Any], Any]]) -> Ints:
    """Return the decision of a policy for a state as an array of integers.

    Parameters
    ----------
    policy
        Policy that makes the decision.
    state
        State for which to decide.
    rules
        Pairs of a description of the expected decision and a function that checks the decision,
        given as an array.

    Raises
    ------
    InvalidInput
        If the decision does not consist of integers, or fails a check.
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
    """Start a replication of a policy, and return the event loop as plain Python.

    Parameters
    ----------
    policy
        Policy to simulate.
    world
        Problem or workload in which the policy runs.
    seed
        Seed of the replication.
    kernel
        Compiled event loop.
    hooks
        Functions that replace kernels called by the loop, by kernel name.
    """
    from specopt.solvers.kernels.kernel import with_fields

    policy.start(world, seed)
    loop = kernel.py_func
    known = loop.__globals__
    plain = {name: found.py_func for name, found in known.items() if hasattr(found, "py_func")}
    play = FunctionType(loop.__code__, known | plain | hooks)

    def played(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):  # integer overflow in random numbers
            return play(*map(with_fields, arguments))

    return played
