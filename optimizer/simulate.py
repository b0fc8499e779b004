"""Play a plan with random acceptances: the front door of the simulators."""

from __future__ import annotations

import time
from typing import overload

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.judge import verify
from specopt.models.problem import Plan, Problem
from specopt.models.result import Result
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.progress import end_progress, print_step
from specopt.solvers.draft_control.simulate import PolicySimulation
from specopt.solvers.draft_control.simulate import simulate as simulate_draft_control
from specopt.solvers.serving_latency.simulate import Simulation
from specopt.solvers.serving_latency.simulate import simulate as simulate_serving_latency

_SIMULATED = (ServingLatencyProblem, DraftControlProblem)


@overload
def simulate(
    problem: ServingLatencyProblem,
    result: Result | Plan,
    *,
    replications: int = 1000,
    seed: int = 0,
    drop_finished: bool = False,
    verbose: bool = False,
) -> Simulation:
    """Return the distribution of a serving-latency plan's real latency."""


@overload
def simulate(
    problem: DraftControlProblem,
    result: Result | Plan,
    *,
    replications: int = 1000,
    seed: int = 0,
    iterations: int | None = None,
    response_tokens: int | None = None,
    verbose: bool = False,
) -> PolicySimulation:
    """Return the tokens per second of a draft-control plan."""


@overload
def simulate(
    problem: Problem,
    result: Result | Plan,
    *,
    replications: int = 1000,
    seed: int = 0,
    drop_finished: bool = False,
    iterations: int | None = None,
    response_tokens: int | None = None,
    verbose: bool = False,
) -> Simulation | PolicySimulation:
    """Return what the problem's kind has."""


def simulate(
    problem: Problem,
    result: Result | Plan,
    *,
    replications: int = 1000,
    seed: int = 0,
    drop_finished: bool = False,
    iterations: int | None = None,
    response_tokens: int | None = None,
    verbose: bool = False,
) -> Simulation | PolicySimulation:
    """Replay a plan with random acceptances: the distribution of its real latency, or of its tokens per second.

    Parameters
    ----------
    problem, result
        A problem of serving latency or draft control, and a result or plan of it.
    replications
        How often, at least twice.
    seed
        The same seed gives the same luck to every task, or the same channel and luck to every iteration, whatever
        the plan: differences between plans are paired.
    drop_finished
        Serving latency: whether a task that has finished leaves its batch at once; else the batch stays as large as
        it was until all of its tasks have finished.
    iterations
        Draft control: iterations of every replication; 1000 if None.
    response_tokens
        Draft control: also play responses of so many tokens, and report E[ratio] of Eq. 12.
    verbose
        Print the progress to stderr.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain or belongs to the other kind, or the result is another problem's, has no
        plan or violates the problem.
    Unsupported
        If this kind of problem has no simulator.

    See Also
    --------
    specopt.solvers.serving_latency.simulate, specopt.solvers.draft_control.simulate : what the replay assumes.
    """
    if not isinstance(problem, _SIMULATED):
        kinds = " and ".join(one.kind for one in _SIMULATED)
        raise Unsupported(f"simulate: {problem.kind} has no simulator; {kinds} have one")
    verify(problem, result)  # refuses what is not this problem's
    plan = result if isinstance(result, Plan) else result.plan
    started = time.perf_counter()

    def tell(done: int, mean: float) -> None:
        if verbose:
            what = f"mean latency {mean:.6g} s" if isinstance(plan, ServingLatencyPlan) else f"{mean:.6g} tokens/s"
            print_step(time.perf_counter() - started, f"{done} of {replications} replications, {what}")

    try:
        if isinstance(problem, DraftControlProblem):
            assert isinstance(plan, DraftControlPlan), "verify has checked it"
            if drop_finished:
                raise InvalidInput(f"drop_finished: expected false for {problem.kind}, which has no batches, got true")
            return simulate_draft_control(
                problem, plan, replications=replications, iterations=1000 if iterations is None else iterations,
                response_tokens=response_tokens, seed=seed, callback=tell,
            )  # fmt: skip
        assert isinstance(plan, ServingLatencyPlan), "verify has checked it"
        for name, value in (("iterations", iterations), ("response_tokens", response_tokens)):
            if value is not None:
                raise InvalidInput(f"{name}: expected none for {problem.kind}, got {value}")
        return simulate_serving_latency(
            problem, plan, replications=replications, seed=seed, drop_finished=drop_finished, callback=tell
        )
    finally:
        if verbose:
            end_progress()
