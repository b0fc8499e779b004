"""Methods for `continuous-serving`."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.continuous_serving.problem import ContinuousServingProblem
from specopt.solvers.auto import Auto
from specopt.solvers.continuous_serving.every_step import EveryStep
from specopt.solvers.continuous_serving.rebatching import Rebatching


@dataclass(frozen=True)
class AutoContinuous(Auto):
    """Dynamic programming over all steps for very few tasks, otherwise the scheduler simulated in
    advance.
    """

    solves = ContinuousServingProblem
    order = (EveryStep, Rebatching)


METHODS = (
    AutoContinuous,
    EveryStep,
    Rebatching,
)
