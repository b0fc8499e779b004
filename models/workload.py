"""Workloads of simulations, as files hold them: the fields of a workload under its kind."""

from __future__ import annotations

from specopt.models.problem import Filed


class Workload(Filed):
    """Base of the workloads."""

    def __init_subclass__(cls) -> None:
        WORKLOADS[cls.kind] = cls

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # arrays inside


WORKLOADS: dict[str, type[Workload]] = {}
"""Each class of workloads is added under its kind when it is defined."""
