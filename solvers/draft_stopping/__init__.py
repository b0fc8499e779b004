"""Methods for `draft-stopping`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.draft_stopping import DraftStoppingProblem
from specopt.solvers.auto import Auto
from specopt.solvers.draft_stopping.histories import HistoryTree
from specopt.solvers.draft_stopping.rules import ConfidenceThreshold, FirstRejection, FixedWindow
from specopt.solvers.draft_stopping.stopping import Belief, OptimalStopping
from specopt.solvers.method import Method


@dataclass(frozen=True)
class AutoStopping(Auto):
    """The belief's rule; where its gap stays open, the tree of all histories."""

    solves: ClassVar[type[DraftStoppingProblem]] = DraftStoppingProblem
    order: ClassVar[tuple[type[Method], ...]] = (Belief, HistoryTree)


METHODS: tuple[type[Method], ...] = (
    AutoStopping,
    Belief,
    HistoryTree,
    OptimalStopping,
    ConfidenceThreshold,
    FirstRejection,
    FixedWindow,
)
