"""Workloads for simulating `fair-goodput` policies. A workload describes how the clients'
acceptance rates change from round to round, and the limits that the clients share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from specopt.models.acceptance_process import AcceptanceProcess
from specopt.models.arguments import integer, only_fields
from specopt.models.fair_goodput.problem import FairGoodputProblem
from specopt.models.fields import Floats, Ints
from specopt.models.problem import FORMAT, strip_header
from specopt.models.workload import Workload

SHARED = ("budget_tokens", "fairness", "weights", "max_draft_tokens")


@dataclass(frozen=True, eq=False)
class GoodputWorkload(Workload):
    """A workload for simulating `fair-goodput` policies.

    Parameters
    ----------
    process
        Process that describes the clients' acceptance rates, or an array of fixed rates.
    budget_tokens
        Maximum number C of draft tokens per round.
    fairness
        Exponent g of the utility, as in the problem.
    weights
        Weight of each client, as in the problem.
    max_draft_tokens
        Maximum number of draft tokens per round for each client, as in the problem.
    problem
        Problem with the same budget, weights, fairness and caps, and with the acceptance rates in
        the first regime during the first round.

    Raises
    ------
    InvalidInput
        If a value is outside its domain.

    Examples
    --------
    >>> from specopt import GoodputWorkload, simulate
    >>> workload = GoodputWorkload(process=[0.9, 0.5], budget_tokens=8)
    >>> simulate(workload, "gradient", replications=2, rounds=20).replications
    2
    """

    kind = "fair-goodput-workload"

    process: AcceptanceProcess | Sequence[float] | Floats
    budget_tokens: int
    fairness: float = 1.0
    weights: Sequence[float] | Floats | None = None
    max_draft_tokens: Sequence[int] | Ints | None = None
    moves: AcceptanceProcess = field(init=False, repr=False)
    problem: FairGoodputProblem = field(init=False, repr=False)

    def __post_init__(self) -> None:
        moves = (
            self.process
            if isinstance(self.process, AcceptanceProcess)
            else AcceptanceProcess.fixed(self.process)
        )
        problem = FairGoodputProblem(
            acceptance_rates=moves.rates[0, 0],
            budget_tokens=self.budget_tokens,
            fairness=self.fairness,
            weights=self.weights,
            max_draft_tokens=self.max_draft_tokens,
        )
        object.__setattr__(self, "moves", moves)
        object.__setattr__(self, "problem", problem)

    def to_dict(self) -> dict[str, Any]:
        """Return the workload as JSON-like data. The data contains the process's rates and
        transition matrix, and the limits that the clients share.
        """
        shared = {name: value for name, value in self.problem.to_dict().items() if name in SHARED}
        moves = {"rates": self.moves.rates.tolist(), "transition": self.moves.transition.tolist()}
        return {"format": FORMAT, "kind": self.kind, **moves, **shared}

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """Build a workload from JSON-like data in the format of `to_dict`."""
        fields = strip_header(data, cls.kind)
        only_fields(fields, ("rates", "transition", *SHARED), "the workload")
        moves = AcceptanceProcess(*(fields.pop(name, None) for name in ("rates", "transition")))
        return cls(moves, integer("budget_tokens", fields.pop("budget_tokens", None), 0), **fields)
