"""Play a plan with random acceptances: the front door of the simulators."""

from __future__ import annotations

import time

from specopt.models.errors import Unsupported
from specopt.models.problem import Plan, Problem
from specopt.models.result import Result
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.progress import end_progress, print_step
from specopt.solve import verify
from specopt.solvers.serving_latency.simulate import Simulation
from specopt.solvers.serving_latency.simulate import simulate as simulate_serving_latency


def simulate(
    problem: Problem,
    result: Result | Plan,
    *,
    replications: int = 1000,
    seed: int = 0,
    drop_finished: bool = False,
    verbose: bool = False,
) -> Simulation:
    """Replay a plan with random acceptances and return the distribution of its real latency.

    Parameters
    ----------
    problem, result
        A problem of serving latency, and a result or plan of it.
    replications
        How often, at least twice.
    seed
        The same seed gives the same luck to every task, whatever the plan: differences between plans are paired.
    drop_finished
        Whether a task that has finished leaves its batch at once; else the batch stays as large as it was until all
        of its tasks have finished.
    verbose
        Print the progress to stderr.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or the result is another problem's, has no plan or violates the problem.
    Unsupported
        If this kind of problem has no simulator.

    See Also
    --------
    specopt.solvers.serving_latency.simulate : what the replay assumes.
    """
    if not isinstance(problem, ServingLatencyProblem):
        raise Unsupported(f"simulate: {problem.kind} has no simulator; {ServingLatencyProblem.kind} has one")
    verify(problem, result)  # refuses what is not this problem's
    plan = result if isinstance(result, Plan) else result.plan
    assert isinstance(plan, ServingLatencyPlan), "verify has checked it"
    started = time.perf_counter()

    def tell(done: int, mean: float) -> None:
        if verbose:
            print_step(
                time.perf_counter() - started, f"{done} of {replications} replications, mean latency {mean:.6g} s"
            )

    try:
        return simulate_serving_latency(
            problem, plan, replications=replications, seed=seed, drop_finished=drop_finished, callback=tell
        )
    finally:
        if verbose:
            end_progress()
