"""Code shared by the methods for prompt chunking: an initial plan, lower bounds, and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.errors import OutOfTime
from specopt.models.fields import Ints
from specopt.models.prompt_chunking.problem import PromptChunkingPlan, PromptChunkingProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome
from specopt.solvers.prompt_chunking.prepare import SECONDS_PER_TOKEN, Prepared, prepare


@dataclass(frozen=True)
class PromptChunkingMethod(Method):
    """Base class of the methods for `prompt-chunking` problems."""

    solves = PromptChunkingProblem
    size_unit = "places where a chunk may end"
    size_hint = "a larger grid_tokens makes them fewer"

    def size_of(self, problem: PromptChunkingProblem) -> float:
        """Return the number of possible chunk ends."""
        return places(problem)

    def bytes_needed(self, problem: PromptChunkingProblem) -> dict[str, float]:
        """Return the required memory, in bytes by purpose.

        It includes the arrays with one entry per token, and one pipeline state.
        """
        needed = {
            "prompt_tokens": 64.0 * problem.prompt_tokens,
            "pipeline_length": 8.0 * problem.pipeline_length,
        }
        return super().bytes_needed(problem) | needed


@dataclass(frozen=True)
class SearchingMethod(PromptChunkingMethod):
    """Base class of the methods that use the local search of `deadline`."""

    def bytes_needed(self, problem: PromptChunkingProblem) -> dict[str, float]:
        """Return the required memory, in bytes by purpose.

        It includes one pipeline state per chunk for the local search.
        """
        states = min(problem.chunk_limit, places(problem)) + 2
        needed = {
            "prompt_tokens times pipeline_length": 8.0 * states * (problem.pipeline_length + 2)
        }
        return super().bytes_needed(problem) | needed


def places(problem: PromptChunkingProblem) -> int:
    """Return the number of possible chunk ends, given the prompt length and the grid."""
    return -(-problem.prompt_tokens // (problem.grid_tokens or 1))


def plan_of(chunks: Sequence[int] | Ints) -> PromptChunkingPlan:
    """Return the plan with the chunk sizes `chunks`."""
    return PromptChunkingPlan(chunks=np.asarray(chunks, np.int64))


def path_bound(problem: PromptChunkingProblem) -> float:
    """Return a lower bound on the time to first token that needs no search, in seconds.

    The result is the larger of two bounds. Each bound is the length of a path through the event
    model that every plan contains. Terms that depend on the plan are replaced by their minimum over
    all plans. Because g never decreases, one token (or one grid cell) is the cheapest chunk.

    On the upload path, the device computes the first token, and every byte is uploaded in at least
    one message. Then at least one token waits, passes the P stages and comes back. The download
    path applies only if all deep states are downloaded. At least one token is uploaded and passes
    the cloud before any byte can be downloaded, and then all bytes are downloaded.
    """
    A, N = problem.bytes_per_token, problem.prompt_tokens
    g, mu = problem.cloud_delay, problem.background_tokens
    wait = 0.0 if problem.wait == "none" else g.at(mu) / problem.pipeline_length
    first = (
        problem.local_overhead_seconds
        + problem.local_seconds_per_token
        + problem.message_overhead_seconds
    )
    through = 2 * problem.link_latency_seconds + wait + g.at(mu + 1)
    one_up, one_down = A / problem.uplink_bytes_per_second, A / problem.downlink_bytes_per_second
    bound = first + N * one_up + through + one_down
    if problem.download == "all":
        bound = max(bound, first + one_up + through + N * one_down)
    return bound + problem.head_seconds


def offer_first_plan(problem: PromptChunkingProblem, budget: Budget) -> None:
    """Record an initial plan with one chunk and a lower bound that needs no search.

    A plan with one chunk is always feasible.
    """
    budget.offer(plan_of([problem.prompt_tokens]))
    budget.improve_bound(path_bound(problem))
    budget.check()


def prepare_and_bound(problem: PromptChunkingProblem, budget: Budget) -> Prepared:
    """Record an initial plan and a lower bound, and return the problem's arrays."""
    offer_first_plan(problem, budget)
    kernels = budget.load("prompt_chunking.bound")
    budget.check(SECONDS_PER_TOKEN * problem.prompt_tokens)
    prepared = prepare(problem)
    assert budget.bound is not None and budget.objective is not None, (
        "offer_first_plan has given both"
    )
    ends = budget.bound, budget.objective
    budget.improve_bound(
        call(budget, kernels.lower_bound, prepared.most, prepared.prompt, *ends, partial=True)
    )
    budget.check()
    return prepared


def call(budget: Budget, kernel: Any, *arguments: Any, partial: bool = False) -> Any:
    """Call a kernel that can be stopped through its `Prompt` argument, and return its result.

    The meaning of `partial` is explained in `Budget.call`.
    """
    kernel = kernel.prepare_for(*arguments)  # in this thread, like `budget.call`

    def prompted(*given: Any) -> Any:
        *rest, stop = given
        return kernel(
            *(each._replace(stop=stop) if hasattr(each, "stop") else each for each in rest)
        )

    return budget.call(prompted, *arguments, partial=partial)


def certify(chunks: Sequence[int] | Ints, budget: Budget, **stats: object) -> Outcome:
    """Return the outcome for the plan with the chunk sizes `chunks` and the best bound so far.

    Raises
    ------
    OutOfTime
        If there are no chunks, because a kernel was stopped before it found a plan.
    """
    if len(chunks) == 0:
        raise OutOfTime
    plan = plan_of(chunks)
    budget.offer(plan)
    return Outcome(plan=plan, bound=budget.bound, stats={"chunks": len(plan.chunks), **stats})
