"""The method `exact`, which proves that the batches, pipeline order, speculation length and
bandwidth shares of its plan are optimal.

The bandwidth shares are optimised separately (Eq. 27). With conservative output lengths, some
optimal plan has batches that are contiguous in sorted input length. The reason is that reordering
tasks by input length keeps all batch sizes and positions, and does not increase the longest input
of any batch.

* In sequential and autoregressive serving, the duration of a step is the sum of its batches' stage
  times in any order. For every speculation length, the optimum is a shortest path over prefixes.
* In pipelined serving, the order matters. `specopt.solvers.serving_latency.pipelined` computes
  bounds and enumerates the plans that the bounds do not exclude.
* If the problem leaves the mechanism open, the best plan over the three mechanisms is returned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specopt.models.serving_latency.problem import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.contiguous import additive_batches
from specopt.solvers.serving_latency.method import CONSERVATIVE, ServingLatencyMethod, begun
from specopt.solvers.serving_latency.pipelined import PipelinedSearch
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import stages

_FEW = 5
"""Maximum number of tasks for which the search takes less time than evaluating all trivial plans.
"""


@dataclass(frozen=True)
class Exact(ServingLatencyMethod):
    """A method that proves optimality. It computes Lagrangian bounds over pipeline positions and
    enumerates the plans that the bounds do not exclude.
    """

    name = "exact"
    exact = True
    source = "own; problem (24) of paper 1, contiguity, Eq. 20 as a maximum over critical batches"
    guarantee = "optimal; a certified gap if there are many tasks"
    complexity = "O(l_max K^2) without overlap; pipelined O(K B 2^M M) per bound, then enumeration"
    takes = (CONSERVATIVE,)
    forms = ()
    supports_warm_start = True

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Return an optimal plan over the problem's mechanisms.

        Mechanisms without overlap are solved first, because their optimum prunes the pipelined
        search.
        """
        budget.offer_warm_start()
        able = begun(problem, budget, is_small=problem.tasks <= _FEW)
        bound = min(
            (self._shortest_paths(p, budget) for p in able if p.mechanism != "pipelined"),
            default=math.inf,
        )
        stats: dict[str, object] = {}
        for prepared in able:
            if prepared.mechanism == "pipelined":
                search = PipelinedSearch(prepared, budget, floor=bound)
                bound = min(bound, search.run())
                stats = search.stats
        return Outcome(plan=budget.incumbent, bound=bound, stats=stats)

    def _shortest_paths(self, prepared: Prepared, budget: Budget) -> float:
        """Find an optimal plan for a mechanism without overlap, and record it in the budget. Return
        its total latency in seconds.
        """
        best = math.inf
        for length in prepared.lengths:
            batches, seconds = additive_batches(stages(prepared, length), (1.0, 1.0), budget)
            if batches is not None and seconds < best:
                best = seconds
                budget.offer(prepared.plan(batches, length))
        return best + prepared.communication_seconds
