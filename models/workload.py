"""The base class of simulation workloads, which can be stored in files."""

from __future__ import annotations

from specopt.models.problem import Filed


class Workload(Filed):
    """Base class of simulation workloads."""

    def __init_subclass__(cls) -> None:
        WORKLOADS[cls.kind] = cls

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # contains arrays


WORKLOADS: dict[str, type[Workload]] = {}
"""Workload classes by kind; each class is added when it is defined."""
