"""Brute force: simulate every way to split the prompt into chunks. The other methods are tested
against it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from specopt.models.prompt_chunking.problem import PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Outcome
from specopt.solvers.prompt_chunking.method import PromptChunkingMethod, offer_first_plan, plan_of

CHUNKS_PER_CHECK = 4096


@dataclass(frozen=True)
class BruteForceChunking(PromptChunkingMethod):
    """Enumerate all ways to split the prompt into chunks."""

    name = "brute-force"
    exact = True
    source = "enumeration of the event model, paper 4"
    guarantee = "optimal"
    complexity = "O(2^M P), M the places where a chunk may end"
    max_size = 16

    def run(self, problem: PromptChunkingProblem, budget: Budget) -> Outcome:
        """Enumerate, extending every beginning by every next chunk."""
        offer_first_plan(problem, budget)
        N, P, grid = problem.prompt_tokens, problem.pipeline_length, problem.grid_tokens or 1
        a, b = problem.local_overhead_seconds, problem.local_seconds_per_token
        up_rate = problem.bytes_per_token / problem.uplink_bytes_per_second
        down_rate = problem.bytes_per_token / problem.downlink_bytes_per_second
        busy = [problem.cloud_delay.at(problem.background_tokens + x) / P for x in range(N + 1)]
        latency, everything = problem.link_latency_seconds, problem.download == "all"
        before_arrival = busy[0] if problem.wait == "overlap" else 0.0
        before_start = busy[0] if problem.wait == "serial" else 0.0
        best, seen = math.inf, 0
        best_chunks: tuple[int, ...] = (N,)
        stack: list[tuple[tuple[int, ...], int, float, float, tuple[float, ...], float]] = [
            ((), 0, 0.0, 0.0, (0.0,) * P, 0.0)
        ]
        while stack:
            chunks, position, local, up, stages, down = stack.pop()
            ends = (
                [N]
                if len(chunks) + 1 == problem.max_chunks
                else [*range(position + grid, N, grid), N]
            )
            for end in ends:
                x = end - position
                computed = local + a + b * x
                sent = max(computed, up) + problem.message_overhead_seconds + x * up_rate
                ready = max(sent + latency + before_arrival, stages[0]) + before_start
                left = []
                for free in stages:
                    ready = max(ready, free) + busy[x]
                    left.append(ready)
                back = max(ready + latency, down)
                if everything:
                    back += x * down_rate
                elif end == N:
                    back += down_rate
                if end < N:
                    stack.append(((*chunks, x), end, computed, sent, tuple(left), back))
                elif back < best:
                    best, best_chunks = back, (*chunks, x)
                seen += 1
                if seen % CHUNKS_PER_CHECK == 0:
                    budget.check()
        plan = plan_of(best_chunks)
        return Outcome(
            plan=plan, bound=budget.offer(plan), stats={"chunks": len(best_chunks), "played": seen}
        )
