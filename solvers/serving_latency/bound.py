"""Lower bounds on the total serving latency, for the methods that have none of their own.

The sequential and autoregressive mechanisms are additive over batches: the shortest path over contiguous batches is
their optimum. For the pipelined mechanism the search behind `exact` is stopped before it enumerates: stage sums, then
Lagrangian bounds over pipeline positions, see `specopt.solvers.serving_latency.pipelined`.
Known output lengths need another argument, see `specopt.solvers.serving_latency.known_bound`.
"""

from __future__ import annotations

from specopt.models.errors import OutOfMemory, OutOfTime
from specopt.solvers.budget import Budget
from specopt.solvers.serving_latency.contiguous import additive_batches
from specopt.solvers.serving_latency.known_bound import rebatching_bound
from specopt.solvers.serving_latency.pipelined import PipelinedSearch
from specopt.solvers.serving_latency.prepare import Prepared


def lower_bound(prepared: Prepared, budget: Budget) -> float:
    """Return a bound on the objective of every plan under this mechanism.

    The budget must hold a plan; its objective is the largest bound that is worth proving.
    """
    if prepared.problem.output_lengths == "known":
        return rebatching_bound(prepared, budget)
    if prepared.mechanism == "pipelined":
        return _pipelined_bound(prepared, budget)
    sums = (additive_batches(prepared, length, 1.0, 1.0, budget)[1] for length in prepared.lengths)
    return prepared.communication_seconds + min(sums)


def _pipelined_bound(prepared: Prepared, budget: Budget) -> float:
    """Return the Lagrangian bound; plans that it meets on the way are not the method's own and are not offered."""
    own = Budget(prepared.problem, time_limit=budget.remaining, memory_limit=budget.memory_limit)
    own.objective = budget.objective
    search = PipelinedSearch(prepared, own)
    try:
        return search.certify()
    except (OutOfMemory, OutOfTime):
        return search.bound
