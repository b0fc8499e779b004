"""Play a plan with random acceptances: the front door of the simulators."""

from __future__ import annotations

import time
from typing import Any

from specopt.kinds import KINDS, kind_of
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.judge import verify
from specopt.models.problem import Plan, Problem
from specopt.models.result import Result
from specopt.progress import end_progress, print_step


def simulate(
    problem: Problem,
    result: Result | Plan,
    *,
    replications: int = 1000,
    seed: int = 0,
    verbose: bool = False,
    **options: Any,
) -> Any:
    """Replay a plan with random acceptances: the distribution of its real latency, or of its tokens per second.

    Parameters
    ----------
    problem, result
        A problem, and a result or plan of it.
    replications
        How often, at least twice.
    seed
        The same seed gives the same luck to every task, or the same channel and luck to every iteration, whatever
        the plan: differences between plans are paired.
    verbose
        Print the progress to stderr.
    options
        Of the kind's own simulator, such as `drop_finished` of serving latency or `iterations` of draft control.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain or belongs to another kind, or the result is another problem's, has no
        plan or violates the problem.
    Unsupported
        If this kind of problem has no simulator.

    See Also
    --------
    specopt.solvers.serving_latency.simulate, specopt.solvers.draft_control.simulate : what the replay assumes.
    """
    simulator = kind_of(problem).simulator
    if simulator is None:
        able = " and ".join(kind.name for kind in KINDS if kind.simulator is not None)
        raise Unsupported(f"simulate: {problem.kind} has no simulator; {able} have one")
    for name, value in options.items():
        if name not in simulator.options:
            has = ", ".join(simulator.options)
            raise InvalidInput(
                f"{name}: simulating {problem.kind} takes no such option (got {value!r}); it takes {has}"
            )
    verify(problem, result)  # refuses what is not this problem's
    plan = result if isinstance(result, Plan) else result.plan
    started = time.perf_counter()

    def tell(done: int, mean: float) -> None:
        if verbose:
            what = simulator.mean.format(mean)
            print_step(time.perf_counter() - started, f"{done} of {replications} replications, {what}")

    try:
        return simulator.play(problem, plan, replications=replications, seed=seed, callback=tell, **options)
    finally:
        if verbose:
            end_progress()
