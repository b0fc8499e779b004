"""Field values that map names to values, for example a value for each drafter or each machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    Amount,
    Custom,
    Floats,
    describe,
    is_unicode,
    plain,
    read,
    refuse_denormal,
    without_numpy,
)
from specopt.models.pass_time.pieces import PassPieces
from specopt.models.rates import ClosedRates

V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Named(Custom, Generic[V]):
    """A mapping from names to values. The JSON form is an object.

    Attributes
    ----------
    item
        Class whose `parse` and `schema` methods define the JSON form of each value.

    Parameters
    ----------
    values
        Mapping from each name to its value, in the order in which the file contains them.
    """

    item: ClassVar[type[Custom]] = Custom  # type: ignore[type-abstract]  # replaced

    values: Mapping[str, V]

    @classmethod
    def parse(cls, data: object, where: str) -> Self:
        """Build the object from a mapping of names to JSON-like data."""
        if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
            raise InvalidInput(f"{where}: expected an object, got {describe(data)}")
        for name in data:
            if not is_unicode(name):
                raise InvalidInput(f"{where}: expected a Unicode string, got {describe(name)}")
        return cls({name: cls._read(value, f"{where}.{name}") for name, value in data.items()})

    def dump(self) -> dict[str, Any]:
        """Return the values as JSON-like data, in a dictionary with the same names."""
        return {name: plain(value) for name, value in self.values.items()}

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the JSON Schema for an object with arbitrary names and valid values."""
        return {"type": "object", "additionalProperties": cls._schema()}

    @classmethod
    def _read(cls, data: object, where: str) -> Any:
        return data if isinstance(data, cls.item) else cls.item.parse(data, where)

    @classmethod
    def _schema(cls) -> dict[str, Any]:
        return cls.item.schema()


class NamedPasses(Named[PassPieces]):
    """A mapping from each machine to the duration of its forward passes."""

    item = PassPieces


class NamedSeconds(Named[float]):
    """A mapping from each drafter to a duration in seconds."""

    @classmethod
    def _read(cls, data: object, where: str) -> float:
        found: float = read(Amount, without_numpy(data), where)
        refuse_denormal(found, where)
        return found

    @classmethod
    def _schema(cls) -> dict[str, Any]:
        return {"type": "number", "minimum": 0}


class NamedTrips(Named[Floats]):
    """A mapping from each machine to its round-trip time in seconds. Each value is a number, or a
    list of equally likely numbers.
    """

    @classmethod
    def _read(cls, data: object, where: str) -> Floats:
        given = without_numpy(data)
        found: list[float] | float = read(list[Amount] | Amount, given, where)
        if found == []:
            raise InvalidInput(f"{where}: expected at least one value, got none")
        return _checked(np.array(found, np.float64), where)

    @classmethod
    def _schema(cls) -> dict[str, Any]:
        number = {"type": "number", "minimum": 0}
        return {"anyOf": [number, {"type": "array", "items": number, "minItems": 1}]}


class NamedRates(Named[Floats]):
    """A mapping from each drafter to its acceptance probabilities. Each value is one probability
    for all positions, or one probability per position.
    """

    item = ClosedRates

    @classmethod
    def _read(cls, data: object, where: str) -> Floats:
        return _checked(cls.item.parse(data, where).values, where)


def _checked(array: Floats, where: str) -> Floats:
    refuse_denormal(array, where)
    return array
