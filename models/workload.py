"""The base class for simulation workloads, which can be stored in files."""

from __future__ import annotations

from specopt.models.problem import Filed


class Workload(Filed):
    """Base class for workloads, which describe the random demand that a simulation generates."""

    def __init_subclass__(cls) -> None:
        WORKLOADS[cls.kind] = cls


WORKLOADS: dict[str, type[Workload]] = {}
"""Mapping from each kind to its workload class. A class is added when it is defined."""
