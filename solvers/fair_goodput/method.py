"""What the methods of fair goodput share: which problems they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from specopt.models.fair_goodput import FairGoodputProblem
from specopt.solvers.fair_goodput.rounds import useful_drafts
from specopt.solvers.method import Method


@dataclass(frozen=True)
class FairGoodputMethod(Method):
    """Base of the methods for `fair-goodput`; subclasses say what they take.

    Class data
    ----------
    per
        Whether it takes rates per round, per second, or both.
    least_rates
        Whether it takes minimum rates.
    fairness
        The only fairness that it takes, or None for all.
    max_drafts
        Most draft tokens, over all clients, that it can look at one by one per second, or None.
    """

    solves: ClassVar[type[FairGoodputProblem]] = FairGoodputProblem
    per: ClassVar[tuple[str, ...]] = ("round", "second")
    least_rates: ClassVar[bool] = True
    fairness: ClassVar[float | None] = None
    max_drafts: ClassVar[int | None] = None

    def refusal(self, problem: FairGoodputProblem) -> str | None:
        """Return why this method cannot take the problem, or None."""
        if problem.per not in self.per:
            return f"its rates are per {problem.per}, the method takes rates per {' or '.join(self.per)}"
        if not self.least_rates and problem.min_goodput is not None:
            return "it has minimum rates, the method takes none"
        if self.fairness is not None and problem.fairness != self.fairness:
            return f"its fairness is {problem.fairness:g}, the method takes {self.fairness:g}"
        if self.max_size is not None and problem.clients > self.max_size:
            return f"it has {problem.clients} clients, the method takes at most {self.max_size}"
        if self.max_drafts is not None and problem.per == "second":
            drafts = int(useful_drafts(problem).sum())
            if drafts > self.max_drafts:
                return f"its clients may draft {drafts} tokens in all, the method takes at most {self.max_drafts}"
        return None
