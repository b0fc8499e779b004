"""The method `history-tree` for `draft-stopping`, which enumerates the histories of scores."""

from __future__ import annotations

from dataclasses import dataclass

from specopt.models.draft_stopping.problem import DraftStoppingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.draft_stopping.histories import best_policy, count_histories
from specopt.solvers.draft_stopping.method import DraftStoppingMethod
from specopt.solvers.draft_stopping.prepare import Prepared
from specopt.solvers.method import Outcome


@dataclass(frozen=True)
class HistoryTree(DraftStoppingMethod):
    """Find the best decision after every history of scores by Dinkelbach's method."""

    name = "history-tree"
    exact = True
    source = "own"
    guarantee = "optimal"
    complexity = "O(C B^L)"
    max_size = 1_000_000
    size_unit = "histories of scores"
    size_hint = "fewer score bins, or a smaller max_draft_tokens"

    def size_of(self, problem: DraftStoppingProblem) -> float:
        """Return the number of histories after which a token can be drafted."""
        return count_histories(problem.scores.bins, problem.max_draft_tokens)

    def bytes_needed(self, problem: DraftStoppingProblem) -> dict[str, float]:
        """Return the memory that is required, in bytes, by purpose.

        The amount for the histories includes the masses after the last token of a round.
        """
        wide = (16.0 + 12.0 * len(problem.rounds)) * problem.scores.bins
        return super().bytes_needed(problem) | {"histories of scores": wide * self.size_of(problem)}

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Compute the best decision after every history, and return the plan with a bound."""
        plan, most = best_policy(prepared, budget.check)
        budget.offer(plan)
        return Outcome(
            plan=budget.incumbent, bound=min(budget.bound or most, most / prepared.seconds)
        )
