"""Methods for `draft-control` (paper 3, Eq. 12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from specopt.models.draft_control.problem import DraftControlPlan, DraftControlProblem
from specopt.solvers.auto import Auto
from specopt.solvers.draft_control.baselines import BASELINES
from specopt.solvers.draft_control.brute_force import BruteForceControl
from specopt.solvers.draft_control.decoupled import Decoupled
from specopt.solvers.draft_control.double_q_learning import DoubleQLearning
from specopt.solvers.draft_control.linear_program import LinearProgram
from specopt.solvers.draft_control.policy_iteration import PolicyIteration
from specopt.solvers.draft_control.prepare import prepare

PRICES = 6


@dataclass(frozen=True)
class AutoControl(Auto):
    """Policy iteration, which proves its policy."""

    solves = DraftControlProblem
    order = (PolicyIteration,)

    def plain_plans(self, problem: DraftControlProblem) -> Iterator[DraftControlPlan]:
        """Yield what is best at the price of a second that it gives, as if all states were visited
        alike.
        """
        prepared = prepare(problem)
        tokens, seconds, lengths, indices = prepared.all_actions()
        price = 0.0
        for _ in range(PRICES):
            choice = np.argmax(tokens - price * seconds, axis=1)[:, None]
            price = float(
                np.take_along_axis(tokens, choice, 1).sum()
                / np.take_along_axis(seconds, choice, 1).sum()
            )
        yield prepared.plan(lengths[choice[:, 0]], indices[choice[:, 0]])


METHODS = (
    AutoControl,
    PolicyIteration,
    Decoupled,
    LinearProgram,
    *BASELINES,
    DoubleQLearning,
    BruteForceControl,
)
