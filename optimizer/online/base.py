"""Base classes for the objects in `specopt.online`.

The classes provide locking, atomic calls and checked states. A method that changes an object first
checks its arguments and computes all new values, and only then assigns them. An exception before
the assignments leaves the object unchanged.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import msgspec
import numpy as np

from specopt.models.arguments import Key, key_of
from specopt.models.errors import InvalidInput, SpecoptError
from specopt.models.fields import SMALLEST, Amount, Floats, describe, read

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])

Unbounded = Amount | Literal["inf"]
"""A duration in seconds that may be infinite.

JSON cannot represent infinity as a number, so an infinite duration is the string "inf".
"""


class Saved(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base class for the saved states of online objects.

    The declared fields are checked when a state is read.
    """

    @classmethod
    def read(cls, state: object) -> Self:
        """Convert data to a state, and check the fields of the state."""
        found: Self = read(cls, state, "state")
        return found


class Refused(SpecoptError):
    """Exception for a request that a scheduler refuses because its response would be late.

    Parameters
    ----------
    message
        Reason for the refusal.
    earliest_seconds
        Earliest time at which the request would be completed, on the clock of the scheduler.
    """

    def __init__(self, message: str, earliest_seconds: float) -> None:
        super().__init__(message)
        self.earliest_seconds = earliest_seconds


class SavedTotals(Saved, kw_only=True):
    """Base class for the states of objects that have counters."""

    totals: dict[str, Amount] = {}
    """Mapping from the names of the counters to their values."""


class Fixed(Generic[T]):
    """A descriptor for a public attribute that is set by the constructor and cannot be changed
    later.

    Parameters
    ----------
    check
        Function of the attribute's name and value that checks the value and returns it.
    """

    def __init__(self, check: Callable[[str, Any], T]) -> None:
        self.check = check

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, one: Online | None, owner: type) -> T:
        value: T = self if one is None else one._settings[self._name]  # type: ignore[assignment]  # of the class
        return value

    def __set__(self, one: Online, value: Any) -> None:
        raise AttributeError(
            f"{self._name} of a {type(one).__name__} cannot be changed; make a new one from its"
            " state"
        )


class Setting(Fixed[T]):
    """A descriptor for a public attribute that can be changed.

    An assignment first calls the method `_change`.
    """

    def __set__(self, one: Online, value: Any) -> None:
        with one._lock:
            value = self.check(self._name, value)
            one._change(self._name, value)
            one._settings[self._name] = value


class Online(ABC):
    """Base class for online objects. In each subclass, the method `_saved` returns the state.

    Slots prevent assignments to attributes that do not exist.

    Parameters
    ----------
    settings
        Values of the attributes declared as `Fixed` or `Setting`, by name.
    """

    __slots__ = ("__weakref__", "_lock", "_settings", "_totals")
    _KIND: ClassVar[str]
    _METRICS: ClassVar[dict[str, str]]
    """Descriptions of the reported metrics, by name; the names of counters end in ``_total``."""

    def __init__(self, **settings: Any) -> None:
        self._lock = threading.RLock()
        self._totals = {name: 0.0 for name in self._METRICS if name.endswith("_total")}
        self._settings = {
            name: getattr(type(self), name).check(name, value) for name, value in settings.items()
        }

    def metrics(self, **labels: str) -> str:
        """Return counters and gauges in Prometheus text format.

        Parameters
        ----------
        **labels
            Labels to add to every metric, for example to distinguish several schedulers.
        """
        with self._lock:
            values = self._totals | self._gauges()
        quoted = ",".join(f'{label}="{_escaped(str(text))}"' for label, text in labels.items())
        lines = []
        for name, description in self._METRICS.items():
            full = f"specopt_{self._KIND}_{name}"
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [
                f"# HELP {full} {description}",
                f"# TYPE {full} {kind}",
                f"{full}{{{quoted}}} {values[name]:.15g}",
            ]
        return "".join(f"{line}\n" for line in lines)

    def _gauges(self) -> dict[str, float]:
        """Return the reported metrics that are not counters, by name."""
        return {}

    def _counted(self, **more: float) -> dict[str, float]:
        """Return a copy of the counters, increased by the given amounts."""
        return self._totals | {
            f"{name}_total": self._totals[f"{name}_total"] + count for name, count in more.items()
        }

    def _restore_totals(self, totals: Mapping[str, float]) -> None:
        """Restore the counters from a state."""
        if not totals.keys() <= self._totals.keys():
            raise InvalidInput(
                f"totals: expected one or more of {', '.join(self._totals)}, got {describe(totals)}"
            )
        self._totals |= totals

    @classmethod
    def _settings_in(cls, state: Saved) -> dict[str, Any]:
        """Return the settings that a state contains, by name."""
        fields = msgspec.structs.asdict(state)
        return {name: fields[name] for name in fields if isinstance(getattr(cls, name, 0), Fixed)}

    def _change(self, name: str, value: Any) -> None:  # noqa: B027  (settings may have no effects)
        """Adapt the object to a new value of a setting, or raise an exception to reject it."""

    def state(self) -> dict[str, Any]:
        """Return the state as data that can be stored as strict JSON.

        The state does not contain the problem that is passed to the constructor.
        """
        with self._lock:
            saved = self._saved()
            saved.totals = self._totals
            state: dict[str, Any] = msgspec.to_builtins(saved)
        return state

    @abstractmethod
    def _saved(self) -> SavedTotals:
        """Return the state, except the counters, as an instance of its declared class."""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def locked(method: Method) -> Method:
    """Decorate a method so that it holds its object's lock while it runs."""

    @wraps(method)
    def held(self: Online, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            return method(self, *args, **kwargs)

    return held  # type: ignore[return-value]  # it has the signature of the method


@contextmanager
def restoring() -> Iterator[None]:
    """Decorate `from_state` so that error messages name the invalid part of the state."""
    try:
        yield
    except InvalidInput as error:
        message = str(error)
        raise InvalidInput(message if message.startswith("state") else f"state.{message}") from None


def distinct(name: str, keys: list[Key]) -> list[Key]:
    """Check that keys are valid and distinct, and return the keys."""
    found = [key_of(f"{name}[{index}]", key) for index, key in enumerate(keys)]
    if len(set(found)) < len(found):
        raise InvalidInput(f"{name}: expected unique keys, got {describe(keys)}")
    return found


def normal(values: Floats) -> Floats:
    """Return values with subnormal numbers replaced by 0, because problems reject subnormal
    numbers.
    """
    return np.where(np.abs(values) < SMALLEST, 0.0, values)


def bounded(value: float) -> Any:
    """Return a number in the form used in states, in which infinity is the string "inf"."""
    return "inf" if value == math.inf else value
