"""Solution methods for `draft-stopping` problems."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.draft_stopping.problem import DraftStoppingProblem
from specopt.solvers.auto import Auto
from specopt.solvers.draft_stopping.baselines import BASELINES
from specopt.solvers.draft_stopping.belief import Belief
from specopt.solvers.draft_stopping.history_tree import HistoryTree
from specopt.solvers.draft_stopping.optimal_stopping import OptimalStopping


@dataclass(frozen=True)
class AutoStopping(Auto):
    """The default method, which runs `belief`.

    If an optimality gap remains, `history-tree` runs as well.
    """

    solves = DraftStoppingProblem
    order = (Belief, HistoryTree)


METHODS = (
    AutoStopping,
    Belief,
    HistoryTree,
    OptimalStopping,
    *BASELINES,
)
