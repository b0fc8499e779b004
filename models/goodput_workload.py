"""Clients that draft for one verifier, round after round: how their acceptance moves, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from specopt.models.acceptance_process import AcceptanceProcess
from specopt.models.fair_goodput import FairGoodputProblem
from specopt.models.fields import Floats, Ints


@dataclass(frozen=True, eq=False)
class GoodputWorkload:
    """What a policy of `fair-goodput` meets.

    Parameters
    ----------
    process
        How the clients' acceptance rates move, or fixed rates.
    budget_tokens
        C: draft tokens per round.
    fairness, weights, max_draft_tokens
        As in the problem.
    problem
        Budget, weights, fairness and caps; its acceptance rates are those of the first round, first regime.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.
    """

    process: AcceptanceProcess | Sequence[float] | Floats
    budget_tokens: int
    fairness: float = 1.0
    weights: Sequence[float] | Floats | None = None
    max_draft_tokens: Sequence[int] | Ints | None = None
    moves: AcceptanceProcess = field(init=False, repr=False)
    problem: FairGoodputProblem = field(init=False, repr=False)

    def __post_init__(self) -> None:
        moves = self.process if isinstance(self.process, AcceptanceProcess) else AcceptanceProcess.fixed(self.process)
        problem = FairGoodputProblem(
            acceptance_rates=moves.rates[0, 0],
            budget_tokens=self.budget_tokens,
            fairness=self.fairness,
            weights=self.weights,  # type: ignore[arg-type]  # lists become arrays
            max_draft_tokens=self.max_draft_tokens,  # type: ignore[arg-type]
        )
        object.__setattr__(self, "moves", moves)
        object.__setattr__(self, "problem", problem)
