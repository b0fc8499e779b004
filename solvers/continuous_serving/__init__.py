"""Methods for `continuous-serving` problems."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.continuous_serving.problem import ContinuousServingProblem
from specopt.solvers.auto import Auto
from specopt.solvers.continuous_serving.every_step import EveryStep
from specopt.solvers.continuous_serving.rebatching import Rebatching


@dataclass(frozen=True)
class AutoContinuous(Auto):
    """Default method for `continuous-serving` problems.

    It uses dynamic programming over all steps for very few tasks, and otherwise plans by simulating
    a scheduler in advance.
    """

    solves = ContinuousServingProblem
    order = (EveryStep, Rebatching)


METHODS = (
    AutoContinuous,
    EveryStep,
    Rebatching,
)
