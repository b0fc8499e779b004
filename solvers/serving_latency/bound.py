"""Lower bounds on the total serving latency.

At every step the pipeline is busy at least as long as each of its stages: T_n >= sum_m T^d_{n,m} and
T_n >= sum_m T^v_{n,m} (Eq. 20). Each sum is additive over batches, and for conservative output lengths contiguous
batches lose nothing, so its least value is a shortest path over prefixes. The sequential and autoregressive
mechanisms are additive themselves: there the shortest path is the optimum.

Known output lengths need another argument, see `specopt.solvers.serving_latency.rebatching`.
"""

from __future__ import annotations

import numpy as np

from specopt.models.fields import Ints
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.rebatching import rebatching_bound

_ENTRIES_PER_CALL = 1_000_000


def lower_bound(prepared: Prepared, budget: Budget) -> float:
    """Return a bound on the objective of every plan under this mechanism."""
    if prepared.problem.output_lengths == "known":
        return rebatching_bound(prepared, budget)
    return prepared.communication_seconds + min(_inference_bound(prepared, n, budget) for n in prepared.lengths)


def _inference_bound(prepared: Prepared, length: int, budget: Budget) -> float:
    if prepared.mechanism != "pipelined":
        return additive_batches(prepared, length, 1.0, 1.0, budget)[1]
    draft = additive_batches(prepared, length, 1.0, 0.0, budget)[1]
    verify = additive_batches(prepared, length, 0.0, 1.0, budget)[1]
    return max(draft, verify)


def additive_batches(
    prepared: Prepared, length: int, draft_weight: float, verify_weight: float, budget: Budget
) -> tuple[Ints, float]:
    """Return the contiguous batches of least weighted stage time, as last starts S[i], and that time.

    Exact for conservative output lengths; O(K^2) or, with b_max the largest batch that fits, O(K b_max).
    """
    kernels = budget.load("serving_latency")
    best = np.full(prepared.tasks + 1, np.inf)
    best[0] = 0.0
    boundary = np.zeros(prepared.tasks + 1, dtype=np.int64)
    row = 1
    while row <= prepared.tasks:
        budget.check()
        stop = min(prepared.tasks + 1, row + max(1, _ENTRIES_PER_CALL // row))
        kernels.additive_rows(
            prepared.inputs, row, stop, length, prepared.tokens_per_step(length), prepared.steps(length),
            float(prepared.problem.longest_output), *prepared.models, prepared.memory,
            draft_weight, verify_weight, best, boundary,
        )  # fmt: skip
        row = stop
    return boundary, float(best[prepared.tasks])
