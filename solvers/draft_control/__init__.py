"""Solution methods for `draft-control` problems (paper 3, Eq. 12)."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.draft_control.problem import DraftControlProblem
from specopt.solvers.auto import Auto
from specopt.solvers.draft_control.baselines import BASELINES
from specopt.solvers.draft_control.brute_force import BruteForceControl
from specopt.solvers.draft_control.decoupled import Decoupled
from specopt.solvers.draft_control.double_q_learning import DoubleQLearning
from specopt.solvers.draft_control.linear_program import LinearProgram
from specopt.solvers.draft_control.policy_iteration import PolicyIteration


@dataclass(frozen=True)
class AutoControl(Auto):
    """The default method, which runs `policy-iteration`.

    The resulting policy is proven optimal.
    """

    solves = DraftControlProblem
    order = (PolicyIteration,)


METHODS = (
    AutoControl,
    PolicyIteration,
    Decoupled,
    LinearProgram,
    *BASELINES,
    DoubleQLearning,
    BruteForceControl,
)
