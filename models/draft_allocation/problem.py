"""Draft allocation: how many tokens each client drafts in one round (paper 5, Eq. 5).

Client i drafts S_i tokens. Each token is accepted with probability a_i if all its predecessors were
accepted, and the server adds one token. A client that drafts S tokens obtains mu_i(S) = 1 + a_i +
... + a_i^S = (1 - a_i^(S+1)) / (1 - a_i) tokens in expectation. The server verifies at most C draft
tokens in a round. The clients' tokens are weighted, for example by the gradient of a utility.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from specopt.models.acceptance import expected_tokens
from specopt.models.errors import InvalidInput
from specopt.models.fields import (
    HalfOpenUnits,
    Ints,
    NonNegatives,
    OptionalTokenBudgets,
    TokenBudget,
    TokenBudgets,
    optional,
    required,
)
from specopt.models.problem import Evaluation, Plan, Problem, Sense


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftAllocationPlan(Plan):
    """The number of draft tokens allocated to each client.

    Parameters
    ----------
    draft_tokens
        Number S_i of draft tokens for each client.
    """

    draft_tokens: TokenBudgets = required()


@dataclass(frozen=True, kw_only=True, eq=False)
class DraftAllocationProblem(Problem[DraftAllocationPlan]):
    """Maximise the expected weighted number of tokens in one round (paper 5, Eq. 5).

    Parameters
    ----------
    acceptance_rates
        Acceptance rate a_i in [0, 1) of each client. This is the probability that a draft token is
        accepted, given that all its predecessors were accepted.
    weights
        Weight w_i >= 0 of each client's tokens in the objective.
    budget_tokens
        Maximum number C of draft tokens that the server verifies in one round.
    max_draft_tokens
        Maximum number of draft tokens for each client in one round. None means that the budget is
        the only limit.

    Examples
    --------
    >>> from specopt import DraftAllocationProblem, solve
    >>> problem = DraftAllocationProblem(
    ...     acceptance_rates=[0.9, 0.6, 0.3], weights=[1.0, 1.0, 2.0], budget_tokens=12
    ... )
    >>> solve(problem).status.value
    'optimal'
    """

    kind = "draft-allocation"
    plan_type = DraftAllocationPlan
    sense: ClassVar[Sense] = "maximize"
    objective_label = "weighted tokens per round"

    acceptance_rates: HalfOpenUnits = required()
    weights: NonNegatives = required()
    budget_tokens: TokenBudget
    max_draft_tokens: OptionalTokenBudgets = optional()

    def __post_init__(self) -> None:
        super().__post_init__()
        with np.errstate(over="ignore"):
            most = self.weights.sum() * (self.budget_tokens + 1.0)
        if not np.isfinite(most):
            raise InvalidInput(
                "weights: the sum of the weights times the budget must be finite; the largest"
                f" weight is {self.weights.max():g}"
            )

    @property
    def clients(self) -> int:
        """Number of clients N."""
        return len(self.acceptance_rates)

    @property
    def caps(self) -> Ints:
        """Maximum number of draft tokens for each client, which is the smaller of the client's
        limit and the server's budget.
        """
        if self.max_draft_tokens is None:
            return np.full(self.clients, self.budget_tokens, np.int64)
        return np.minimum(self.max_draft_tokens, self.budget_tokens)

    # ------------------------------------------------------------------ the judge

    def evaluate(self, plan: DraftAllocationPlan) -> Evaluation:
        """Return the objective value sum_i w_i (1 - a_i^(S_i+1)) / (1 - a_i) of a plan (Eq. 5).

        The evaluation reports two terms: the tokens that the server adds, sum_i w_i, and the
        accepted draft tokens, sum_i w_i (a_i + ... + a_i^S_i).
        """
        self.expect_fit(plan)
        w = self.weights
        a = self.acceptance_rates
        S = plan.draft_tokens
        accepted = np.where(S > 0, a * expected_tokens(a, np.maximum(S, 1) - 1), 0.0)
        terms = {"own_tokens": float(w.sum()), "accepted_draft_tokens": float((w * accepted).sum())}
        return Evaluation(float((w * expected_tokens(a, S)).sum()), terms)

    def violations(self, plan: DraftAllocationPlan) -> list[str]:
        """Return messages about the clients' limits and the budget, if the plan exceeds them."""
        found = super().violations(plan)
        if found:
            return found
        total = sum(plan.draft_tokens.tolist())
        if total > self.budget_tokens:
            found.append(
                f"draft_tokens: the sum is {total}, but the budget is {self.budget_tokens}"
            )
        if self.max_draft_tokens is not None:
            found += [
                f"draft_tokens[{client}]: expected at most {self.max_draft_tokens[client]}, "
                f"got {plan.draft_tokens[client]}"
                for client in np.flatnonzero(plan.draft_tokens > self.max_draft_tokens)
            ]
        return found

    def _defects(self, plan: DraftAllocationPlan) -> list[str]:
        """Return the reasons why the plan does not match this problem."""
        if len(plan.draft_tokens) != self.clients:
            return [f"draft_tokens: expected {self.clients} entries, got {len(plan.draft_tokens)}"]
        return []
