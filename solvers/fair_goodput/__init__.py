"""Solution methods for `fair-goodput` problems (paper 5).

The problems ask for fair long-run rates of clients that share one verifier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from specopt.models.fair_goodput.problem import FairGoodputPlan, FairGoodputProblem
from specopt.solvers.auto import Auto
from specopt.solvers.fair_goodput.baselines import BASELINES, Fixed
from specopt.solvers.fair_goodput.best_constant import BestConstant
from specopt.solvers.fair_goodput.column_generation import ColumnGeneration
from specopt.solvers.fair_goodput.convex import Convex
from specopt.solvers.fair_goodput.dual import Dual
from specopt.solvers.fair_goodput.enumeration import Enumeration
from specopt.solvers.fair_goodput.threshold_greedy import ThresholdGreedy
from specopt.solvers.fair_goodput.tokens_per_round import TokensPerRound


@dataclass(frozen=True)
class AutoGoodput(Auto):
    """The default method.

    For rates per round, it runs `dual`. For rates per second, it finds the best single round or the
    best mixture of rounds.
    """

    solves = FairGoodputProblem
    order = (Dual, ThresholdGreedy, ColumnGeneration)
    instead = (Fixed,)

    def repaired(
        self, problem: FairGoodputProblem, plan: FairGoodputPlan
    ) -> FairGoodputPlan | None:
        """Return the plan's schedule with its rates recomputed for this problem.

        Return None if the number of clients differs.
        """
        if len(plan.goodput) != problem.clients:
            return None
        goodput, tokens = problem.realised(plan.schedule)
        return replace(plan, goodput=goodput, mean_draft_tokens=tokens)


METHODS = (
    AutoGoodput,
    Dual,
    ThresholdGreedy,
    ColumnGeneration,
    BestConstant,
    Convex,
    Enumeration,
    *BASELINES,
    TokensPerRound,
)
