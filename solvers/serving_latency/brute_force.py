"""Brute force over every partition of the tasks into batches, every pipeline order and every
speculation length.

Ordered set partitions are enumerated as sequences of disjoint subsets. Tables hold the stage times
of every subset at every step. The enumeration does not assume that batches are contiguous or
ordered, so the other methods are tested against it. It also supports known output lengths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from specopt.models.acceptance import decoding_steps, expected_tokens_per_step
from specopt.models.fields import Ints
from specopt.models.serving_latency.problem import ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.serving_latency.method import ServingLatencyMethod, best_of_mechanisms
from specopt.solvers.serving_latency.prepare import Prepared
from specopt.solvers.serving_latency.stages import tabled
from specopt.solvers.threads import in_threads


@dataclass(frozen=True)
class BruteForce(ServingLatencyMethod):
    """Brute force over all set partitions, pipeline orders and speculation lengths."""

    name = "brute-force"
    exact = True
    source = "enumeration of problem (24), paper 1"
    guarantee = "optimal"
    complexity = "O(l_max a(K) N), a(K) ordered set partitions: 47,293 for K = 7, 545,835 for K = 8"
    max_size = 8
    forms = ()

    def bytes_needed(self, problem: ServingLatencyProblem) -> dict[str, float]:
        """Return how many bytes are needed for the stage times of all subsets at all steps."""
        steps = int(problem.planned_output_tokens.max())
        if problem.mechanism not in ("any", "autoregressive") and problem.rounds == "mean":
            steps = decoding_steps(steps, expected_tokens_per_step(problem.common_rate, 1))
        tasks = min(problem.tasks, self.max_size)
        return {"output_tokens": 16.0 * (2**tasks + tasks * (tasks + 1)) * steps}

    def run(self, problem: ServingLatencyProblem, budget: Budget) -> Outcome:
        """Return the best of all plans over the problem's mechanisms."""
        return best_of_mechanisms(
            problem, budget, lambda prepared: self._enumerate(prepared, budget)
        )

    def _enumerate(self, prepared: Prepared, budget: Budget) -> Outcome:
        """Enumerate all plans under one mechanism, for one speculation length and one first batch
        at a time.
        """
        kernels = budget.load("serving_latency.enumeration")
        tasks = prepared.tasks
        subsets = 1 << tasks
        best, plan = np.inf, None

        def search(first: int) -> tuple[float, Ints]:
            """Search for plans that start with the batch `first` and have a smaller inference time
            T_inf than `best`.

            Return a tuple (T_inf, batches) for the best of these plans. If there is none, T_inf is
            `best`, and the batches are zeros.
            """
            order = np.zeros(tasks, np.int64)
            found = kernels.enumerate_after(
                first, prepared.overlap, draft, verify, allowed, best, order
            )
            return found, order

        for length in prepared.lengths:
            steps = prepared.batch_steps(prepared.outputs, length)
            times = tabled(prepared, length, steps)
            draft, verify = np.zeros((2, subsets, steps))
            allowed = np.zeros(subsets, np.bool_)
            for mask in range(1, subsets):
                members = _members(mask)
                size, longest = len(members), prepared.outputs[members].max()
                allowed[mask] = prepared.fits(size, prepared.inputs[members[-1]], longest)
                done = prepared.batch_steps(prepared.outputs[members], length)
                row = times[:, size * tasks + members[-1], :done]
                draft[mask, :done], verify[mask, :done] = row
            pace = budget.pace()
            for start in range(1, subsets, budget.workers):
                pace()
                firsts = range(start, min(start + budget.workers, subsets))
                for found, order in in_threads(budget.workers, search, firsts):
                    if found < best:  # in order of the first batches, as with one worker
                        best = found
                        plan = prepared.plan([_members(mask) for mask in order if mask], length)
                        budget.offer(plan)
        assert plan is not None, "every task fits alone, so one-task batches are feasible"
        return Outcome(plan=plan, bound=best + prepared.communication_seconds)


def _members(mask: int) -> list[int]:
    """Return the indices of the tasks in a subset that is encoded as a bit mask."""
    return [k for k in range(int(mask).bit_length()) if mask >> k & 1]
