"""User-defined policies, which are plain Python classes that plug into the simulators of all
problem kinds.

Built-in policies are compiled into the simulators. For a user-defined policy, the same event loops
run as plain Python code and call the policy at every decision. They use the same random numbers,
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
    """Base class for policies, which make decisions in a simulated system.

    A subclass must implement `decide`. The arguments of `decide` and `learn` depend on the problem
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
        """Prepare for a new replication, and discard everything learned in the previous one.

        `world` is the problem or workload that is simulated. `seed` is a number that identifies the
        replication, for policies that draw random numbers.
        """

    @abstractmethod
    def decide(self, state: Any) -> Any:
        """Return the policy's decision in a state of the system."""

    def learn(self, outcome: Any) -> None:  # noqa: B027  (optional)
        """Update the policy with the outcome of its last decision. By default, this method does
        nothing.
        """


def as_policy(policy: object, named: Mapping[str, Callable[[], Any]], *classes: type) -> Any:
    """Resolve an argument that specifies a policy, either by a name in `named` or as an instance of
    one of `classes`, and return the policy.

    Raises
    ------
    InvalidInput
        If the argument is neither a known name nor an instance of one of the classes.
    """
    if isinstance(policy, str) and policy in named:
        return named[policy]()
    if not isinstance(policy, classes):
        names = ", ".join([*named, *(one.__name__ for one in classes)])
        raise InvalidInput(f"policy: expected one of {names}, got {describe(policy)}")
    return policy


def settings_of(policy: object) -> dict[str, Any]:
    """Return the options of a policy by name. The dictionary is empty if the policy has no
    options.
    """
    return dataclasses.asdict(policy) if dataclasses.is_dataclass(policy) else {}  # type: ignore[arg-type]


def refused(policy: Policy, expected: str, decision: object) -> InvalidInput:
    """Build the exception to raise if a policy makes an invalid decision."""
    return InvalidInput(f"policy {policy.name}: expected {expected}, got {describe(decision)}")


def decided(policy: Policy, state: Any, *rules: tuple[str, Callable[[Any], Any]]) -> Ints:
    """Ask a policy for a decision, validate it, and return it as an array of integers.

    Parameters
    ----------
    policy
        Policy that makes the decision.
    state
        State in which the policy must decide.
    rules
        Pairs of a description of a valid decision and a function that receives the decision as an
        array and returns whether it is valid.

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
    """Start a replication of a policy, and return the simulator's event loop as a plain Python
    function.

    Parameters
    ----------
    policy
        Policy to simulate.
    world
        Problem or workload that is simulated.
    seed
        Number that identifies the replication, which is passed to `Policy.start`.
    kernel
        Compiled event loop of the simulator.
    hooks
        Functions that replace compiled functions in the loop, by the name of the replaced function.
        They usually call the policy.
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
