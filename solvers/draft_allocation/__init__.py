"""Methods for `draft-allocation` (paper 5, Eq. 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.draft_allocation import DraftAllocationProblem
from specopt.solvers.auto import Auto
from specopt.solvers.draft_allocation.brute_force import BruteForceAllocation
from specopt.solvers.draft_allocation.greedy import Greedy
from specopt.solvers.draft_allocation.milp import MilpAllocation
from specopt.solvers.draft_allocation.water_level import WaterLevel
from specopt.solvers.method import Method


@dataclass(frozen=True)
class AutoAllocation(Auto):
    """The water level, which is proven."""

    solves: ClassVar[type[DraftAllocationProblem]] = DraftAllocationProblem
    order: ClassVar[tuple[type[Method], ...]] = (WaterLevel, Greedy)


METHODS: tuple[type[Method], ...] = (
    AutoAllocation,
    WaterLevel,
    Greedy,
    BruteForceAllocation,
    MilpAllocation,
)
