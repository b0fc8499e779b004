"""Methods for `draft-control` (paper 3, Eq. 12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.draft_control import DraftControlProblem
from specopt.solvers.auto import Auto
from specopt.solvers.draft_control.best_static import BestStatic
from specopt.solvers.draft_control.brute_force import BruteForceControl
from specopt.solvers.draft_control.decoupled import Decoupled
from specopt.solvers.draft_control.double_q_learning import DoubleQLearning
from specopt.solvers.draft_control.linear_program import LinearProgram
from specopt.solvers.draft_control.myopic import Myopic
from specopt.solvers.draft_control.policy_iteration import PolicyIteration
from specopt.solvers.method import Method


@dataclass(frozen=True)
class AutoControl(Auto):
    """Policy iteration, which proves its policy."""

    solves: ClassVar[type[DraftControlProblem]] = DraftControlProblem
    order: ClassVar[tuple[type[Method], ...]] = (PolicyIteration, Decoupled)


METHODS: tuple[type[Method], ...] = (
    AutoControl,
    PolicyIteration,
    Decoupled,
    LinearProgram,
    Myopic,
    BestStatic,
    DoubleQLearning,
    BruteForceControl,
)
