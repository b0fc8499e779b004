"""What the objects of `specopt.online` have in common: one lock, calls that take effect as a whole,
checked states.

The rule for every method that changes something: check all that was passed, compute the new values
beside those that are held, and end with plain assignments. Whatever is raised before them leaves
the object as it was.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar

import msgspec
import numpy as np

from specopt.models.arguments import Key, key_of
from specopt.models.errors import InvalidInput, SpecoptError
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


class Refused(SpecoptError):
    """A request that a scheduler refuses because its response would be late.

    Parameters
    ----------
    message
        Why.
    earliest_seconds
        When it would be done at the earliest, on the scheduler's clock.
    """

    def __init__(self, message: str, earliest_seconds: float) -> None:
        super().__init__(message)
        self.earliest_seconds = earliest_seconds


class SavedTotals(Saved, kw_only=True):
    """Base of the state of an object; `totals`: its counters."""

    totals: dict[str, Amount] = {}


class Setting(Generic[T]):
    """A public attribute, kept with a leading underscore: to set it is up to the object's
    `_change`.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, one: Online | None, owner: type) -> T:
        value: T = self if one is None else getattr(one, f"_{self._name}")  # type: ignore[assignment]  # of the class
        return value

    def __set__(self, one: Online, value: Any) -> None:
        with one._lock:
            one._change(self._name, value)


class Online(ABC):
    """Base of the objects; `_saved` says what their state is.

    With slots no attribute can be set that does not exist, and would have no effect.
    """

    __slots__ = ("__weakref__", "_lock", "_totals")
    _KIND: ClassVar[str]
    _METRICS: ClassVar[dict[str, str]]
    """What is reported: what each number is, by its name; counters end in ``_total``."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._totals = {name: 0.0 for name in self._METRICS if name.endswith("_total")}

    def metrics(self, **labels: str) -> str:
        """Return counters and gauges as Prometheus reads them.

        Parameters
        ----------
        **labels
            Given to each, to tell one scheduler from others.
        """
        with self._lock:
            values = self._totals | self._gauges()
        quoted = ",".join(f'{label}="{_escaped(str(text))}"' for label, text in labels.items())
        lines = []
        for name, what in self._METRICS.items():
            full, kind = (
                f"specopt_{self._KIND}_{name}",
                "counter" if name.endswith("_total") else "gauge",
            )
            lines += [
                f"# HELP {full} {what}",
                f"# TYPE {full} {kind}",
                f"{full}{{{quoted}}} {values[name]:.15g}",
            ]
        return "".join(f"{line}\n" for line in lines)

    def _gauges(self) -> dict[str, float]:
        """Return what is reported besides the counters."""
        return {}

    def _counted(self, **more: float) -> dict[str, float]:
        """Return the counters once more was counted."""
        return self._totals | {
            f"{name}_total": self._totals[f"{name}_total"] + count for name, count in more.items()
        }

    def _restore_totals(self, totals: Mapping[str, float]) -> None:
        """Take over the counters of a state."""
        expect(
            totals.keys() <= self._totals.keys(),
            "totals",
            f"some of {', '.join(self._totals)}",
            totals,
        )
        self._totals |= totals

    def _change(self, name: str, value: Any) -> None:
        """Change a setting, or refuse to."""
        raise AttributeError(
            f"{name} of a {type(self).__name__} cannot be changed: expected a new one, from its"
            " state"
        )

    def state(self) -> dict[str, Any]:
        """Return everything but what the constructor is given as a problem, as data for strict
        JSON.
        """
        with self._lock:
            state: dict[str, Any] = msgspec.to_builtins(self._saved())
        return state

    @abstractmethod
    def _saved(self) -> Saved:
        """Return the state as it is declared."""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


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
            raise InvalidInput(
                message if message.startswith("state") else f"state.{message}"
            ) from None

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
    """Return values that may go into a problem, which refuses denormal ones: averages that decay
    count as 0 then.
    """
    return np.where(np.abs(values) < SMALLEST, 0.0, values)


def bounded(value: float) -> Any:
    """Return a number as a state has it: infinity is a text."""
    return "inf" if value == math.inf else value
