"""An example of a method and a family that specopt finds in another distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt import Problem, VerificationBatchProblem, generate
from specopt.instances.family import Family
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.verification_batch.method import (
    VerificationBatchMethod,
    certify,
    offer_first_plan,
)
from specopt.solvers.verification_batch.prepare import Prepared


@dataclass(frozen=True)
class ShortestFirst(VerificationBatchMethod):
    """Requests with the fewest new tokens first; requests that no longer fit are skipped."""

    name = "shortest-first"
    source = "own"
    guarantee = "none; a certified gap"
    complexity = "O(n log n)"

    def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
        """Fill the batch with requests in the order of their new tokens."""
        prepared = Prepared(problem)
        offer_first_plan(prepared, budget)
        order = np.argsort(problem.new_tokens, kind="stable")
        able = [int(i) for i in order if i not in prepared.hopeless]
        return certify(prepared, prepared.in_order(able, skip=True), budget)


def quiet(*, requests: int = 6, seed: int = 0) -> Problem:
    """Return a problem with few requests."""
    return generate("verification-batch/warm", requests=requests, seed=seed)


QUIET = Family("verification-batch/quiet", quiet)
