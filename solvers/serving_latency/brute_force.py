"""Brute force: every partition into batches, every pipeline order, every speculation length.

Ordered set partitions are enumerated as sequences of disjoint subsets; stage times of every subset
are tabled per step. Nothing is assumed (no contiguity, no order), so it is the oracle of every
other method, for known output lengths too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.acceptance import decoding_steps, expected_tokens_per_step
from specopt.models.fields import Floats, Ints
from specopt.models.serving_latency.problem import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.method import ServingLatencyMethod, best_of_mechanisms
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import stages
from specopt.solvers.threads import in_threads


@dataclass(frozen=True)
class BruteForce(ServingLatencyMethod):
    """All set partitions, all pipeline orders, all speculation lengths."""

    name = "brute-force"
    exact = True
    source = "enumeration of problem (24), paper 1"
    guarantee = "optimal"
    complexity = "O(l_max a(K) N), a(K) ordered set partitions: 47,293 for K = 7, 545,835 for K = 8"
    max_size = 8
    forms = ()

    def bytes_needed(self, problem: ServingLatencyProblem) -> dict[str, float]:
        """Return the bytes of the stage times of all subsets at all steps."""
        steps = int(problem.planned_output_tokens.max())
        if problem.mechanism not in ("any", "autoregressive") and problem.rounds == "mean":
            steps = decoding_steps(steps, expected_tokens_per_step(problem.common_rate, 1))
        tasks = min(problem.tasks, self.max_size)
        return {"output_tokens": 16.0 * (2**tasks + tasks + 1) * steps}

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Enumerate under each mechanism."""
        return best_of_mechanisms(
            problem, budget, lambda prepared: self._enumerate(prepared, budget)
        )

    def _enumerate(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Enumerate, one speculation length and first batch at a time."""
        kernels = budget.load("serving_latency.enumeration")
        tasks = prepared.tasks
        subsets = 1 << tasks
        best, plan = np.inf, None
        for length in prepared.lengths:
            at = stages(prepared, length)
            steps = int(at.steps.max())
            draft, verify = np.zeros((2, subsets, steps))
            spaces = [_space(tasks, steps) for _ in range(budget.workers)]
            allowed = np.zeros(subsets, np.bool_)
            kernels.subset_stages(*at.arrays, draft, verify, allowed)
            if prepared.problem.rounds == "slowest":
                for mask in range(1, subsets):
                    members = [k for k in range(tasks) if mask >> k & 1]
                    done = prepared.batch_steps(prepared.outputs[members], length)
                    draft[mask, done:] = verify[mask, done:] = 0.0
            pace = budget.pace()
            tables = at.setting, draft, verify, allowed
            for start in range(1, subsets, budget.workers):
                pace()
                firsts = range(start, min(start + budget.workers, subsets))
                for found, space in zip(
                    self._after(kernels, firsts, tables, best, spaces), spaces, strict=False
                ):
                    if found < best:  # in the order of the first batches, as by one worker
                        best = found
                        batches = [
                            [k for k in range(tasks) if mask >> k & 1] for mask in space[-1] if mask
                        ]
                        plan = prepared.plan(batches, length)
                        budget.offer(plan)
        assert plan is not None, "every task fits alone, so one-task batches are feasible"
        return Outcome(plan=plan, bound=best + prepared.communication_seconds)

    @staticmethod
    def _after(
        kernels: Any, firsts: range, tables: tuple[Any, ...], best: float, spaces: list[Any]
    ) -> list[float]:
        """Return the least T_inf after each first batch, each in a thread of its own; below `best`,
        else that.
        """

        def search(of: tuple[int, Any]) -> float:
            found: float = kernels.enumerate_after(of[0], *tables, best, *of[1])
            return found

        return in_threads(len(spaces), search, list(zip(firsts, spaces, strict=False)))


def _space(tasks: int, steps: int) -> tuple[Floats, Floats, Ints, Ints, Ints]:
    """Return the work space of a search: when stages are free, rests, batches, and the order that
    it leaves.
    """
    rest, batch, order = np.zeros((3, tasks + 1), np.int64)
    drafted, done = np.zeros((2, tasks + 1, steps))
    return drafted, done, rest, batch, order[:tasks]
