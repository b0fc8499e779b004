"""What policies meet in a simulation, as files hold it: the fields of a workload under its kind."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from specopt.models.fields import dump, parse
from specopt.models.problem import FORMAT, strip_header


class Workload:
    """Base of the workloads: declared dataclasses with a JSON form."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        WORKLOADS[cls.kind] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return the workload as JSON-like data, fields at their defaults left out."""
        return {"format": FORMAT, "kind": self.kind, **dump(self)}

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build a workload from JSON-like data.

        Raises
        ------
        InvalidInput
            If a field is unknown, missing, of the wrong type or outside its domain.
        """
        return parse(cls, strip_header(data, cls.kind))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # arrays inside


WORKLOADS: dict[str, type[Workload]] = {}
"""The classes of workloads by kind."""
