"""Solution methods for `placement` problems."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.placement.problem import PlacementProblem
from specopt.solvers.auto import Auto
from specopt.solvers.placement.baselines import BASELINES
from specopt.solvers.placement.brute_force import BruteForcePlacement
from specopt.solvers.placement.milp import MilpPlacement
from specopt.solvers.placement.refined import Refined


@dataclass(frozen=True)
class AutoPlacement(Auto):
    """The default method, `refined`, which starts from simple plans and proves a bound."""

    solves = PlacementProblem
    order = (Refined,)


METHODS = (
    AutoPlacement,
    Refined,
    MilpPlacement,
    BruteForcePlacement,
    *BASELINES,
)
