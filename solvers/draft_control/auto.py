"""The portfolio for `draft-control`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.draft_control import DraftControlProblem
from specopt.solvers.auto import Auto
from specopt.solvers.draft_control.decoupled import Decoupled
from specopt.solvers.draft_control.policy_iteration import PolicyIteration
from specopt.solvers.method import Method


@dataclass(frozen=True)
class AutoControl(Auto):
    """Policy iteration, which proves its policy."""

    solves: ClassVar[type[DraftControlProblem]] = DraftControlProblem
    order: ClassVar[tuple[type[Method], ...]] = (PolicyIteration, Decoupled)
