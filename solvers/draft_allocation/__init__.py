"""Methods for `draft-allocation` (paper 5, Eq. 5)."""

from __future__ import annotations

from specopt.solvers.draft_allocation.auto import AutoAllocation
from specopt.solvers.draft_allocation.brute_force import BruteForceAllocation
from specopt.solvers.draft_allocation.greedy import Greedy
from specopt.solvers.draft_allocation.milp import MilpAllocation
from specopt.solvers.draft_allocation.water_level import WaterLevel
from specopt.solvers.method import Method

METHODS: tuple[type[Method], ...] = (
    AutoAllocation,
    WaterLevel,
    Greedy,
    BruteForceAllocation,
    MilpAllocation,
)
