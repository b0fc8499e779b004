"""Methods for `draft-stopping`."""

from __future__ import annotations

from specopt.solvers.draft_stopping.auto import AutoStopping
from specopt.solvers.draft_stopping.belief import Belief
from specopt.solvers.draft_stopping.confidence_threshold import ConfidenceThreshold
from specopt.solvers.draft_stopping.first_rejection import FirstRejection
from specopt.solvers.draft_stopping.fixed_window import FixedWindow
from specopt.solvers.draft_stopping.history_tree import HistoryTree
from specopt.solvers.draft_stopping.optimal_stopping import OptimalStopping
from specopt.solvers.method import Method

METHODS: tuple[type[Method], ...] = (
    AutoStopping,
    Belief,
    HistoryTree,
    OptimalStopping,
    ConfidenceThreshold,
    FirstRejection,
    FixedWindow,
)
