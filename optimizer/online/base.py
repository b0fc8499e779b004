"""What the objects of `specopt.online` have in common: one lock, calls that take effect as a whole, checked states.

The rule for every method that changes something: check all that was passed, compute the new values beside those that
are held, and end with plain assignments. Whatever is raised before them leaves the object as it was.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

import msgspec
import numpy as np

from specopt.models.arguments import Key, key_of
from specopt.models.errors import InvalidInput
from specopt.models.fields import SMALLEST, Amount, Floats, describe, read

P = ParamSpec("P")
T = TypeVar("T")
O = TypeVar("O", bound="Online")  # noqa: E741

Unbounded = Amount | Literal["inf"]
"""A duration that may be infinite, which JSON has no number for."""


class Saved(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of what a state says: declared fields, which are checked when it is read."""

    @classmethod
    def read(cls, state: object) -> Self:
        """Return a state whose fields are as declared."""
        found: Self = read(cls, state, "state")
        return found


class Online(ABC):
    """Base of the objects; `_saved` says what their state is."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def state(self) -> dict[str, Any]:
        """Return everything but what the constructor is given as a problem, as data for strict JSON."""
        with self._lock:
            state: dict[str, Any] = msgspec.to_builtins(self._saved())
        return state

    @abstractmethod
    def _saved(self) -> Saved:
        """Return the state as it is declared."""


def locked(method: Callable[Concatenate[O, P], T]) -> Callable[Concatenate[O, P], T]:
    """Let one thread at a time into the methods of an object."""

    @wraps(method)
    def held(self: O, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return method(self, *args, **kwargs)

    return held  # type: ignore[return-value]  # a wrapper that keeps the name of its first argument


def restoring(method: Callable[P, T]) -> Callable[P, T]:
    """Let what a `from_state` refuses be named as a part of the state."""

    @wraps(method)
    def named(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except InvalidInput as error:
            message = str(error)
            raise InvalidInput(message if message.startswith("state") else f"state.{message}") from None

    return named


def distinct(name: str, keys: list[Key]) -> list[Key]:
    """Return keys, of which no two are the same."""
    found = [key_of(f"{name}[{index}]", key) for index, key in enumerate(keys)]
    if len(set(found)) < len(found):
        raise InvalidInput(f"{name}: expected different keys, got {describe(keys)}")
    return found


def expect(good: bool, name: str, expected: str, value: object) -> None:
    """Refuse a part of a state that does not go with the others."""
    if not good:
        raise InvalidInput(f"{name}: expected {expected}, got {describe(value)}")


def normal(values: Floats) -> Floats:
    """Return values that may go into a problem, which refuses denormal ones: averages that decay count as 0 then."""
    return np.where(np.abs(values) < SMALLEST, 0.0, values)


def bounded(value: float) -> Any:
    """Return a number as a state has it: infinity is a text."""
    return "inf" if value == math.inf else value
