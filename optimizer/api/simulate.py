"""Simulation of plans and policies: the common entry point of all simulators."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

from specopt.api.plugins import POLICIES, plugged
from specopt.console.progress import end_progress, print_step, showing_kernels
from specopt.kinds import KINDS, kinds
from specopt.kinds.kind import Simulator
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.judge import verify
from specopt.models.problem import Plan, Problem, refuse_subclass
from specopt.models.result import Result
from specopt.solvers.simulation import Simulation

SIMULATORS = {kind.name: kind.simulator for kind in KINDS if kind.simulator is not None}


def simulate(
    world: Any,
    policy: Result | Plan | Any,
    *,
    seed: int = 0,
    replications: int | None = None,
    verbose: bool = False,
    **options: Any,
) -> Simulation:
    """Simulate a plan with random acceptances, or a policy on a workload, many times.

    Parameters
    ----------
    world
        Problem of a kind with a simulator, such as serving latency, continuous serving or draft
        control, or a workload for fair goodput, verification or prompts.
    policy
        Result or plan of the problem; or a policy, the name of a policy, or an instance of your own
        subclass of `specopt.Policy`.
    seed
        Seed of all random numbers. The random numbers do not depend on the plan or policy, so that
        results of different policies can be compared in pairs.
    replications
        Number of replications; None for the default of the simulator.
    verbose
        Whether to print progress to stderr.
    options
        Options of the simulator, such as `drop_finished`, `iterations` or `devices`.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, the simulator has no such option, or the result
        belongs to another problem, has no plan or violates the problem.
    Unsupported
        If this problem or workload has no simulator.

    See Also
    --------
    specopt.solvers.serving_latency.simulate, specopt.solvers.continuous_serving.simulate,
    specopt.solvers.draft_control.simulate,
    specopt.solvers.fair_goodput.simulate, specopt.solvers.verification_batch.simulate,
    specopt.solvers.prompt_chunking.simulate : assumptions and options of each simulator.
    """
    name, simulator = simulator_of(world)
    if isinstance(policy, (Result, Plan)):
        verify(world, policy)  # rejects results of other problems
        policy = policy.plan if isinstance(policy, Result) else policy
    elif isinstance(policy, str) and policy not in simulator.policies:
        policy = (plugged(POLICIES, f"{name}.{policy}") or (lambda: policy))()
    for option, value in options.items():
        if option not in simulator.options:
            has = ", ".join(simulator.options)
            raise InvalidInput(
                f"{option}: the simulator of {name} has no such option (got {value!r}); it has"
                f" {has}"
            )
    if replications is not None:
        options["replications"] = replications
    started = time.perf_counter()

    def show(done: int, mean: float) -> None:
        print_step(time.perf_counter() - started, f"{done} replications, mean {mean:.6g}")

    try:
        with showing_kernels() if verbose else nullcontext():
            return simulator.play(
                world, policy, seed=seed, callback=show if verbose else None, **options
            )
    finally:
        if verbose:
            end_progress()


def simulator_of(world: object) -> tuple[str, Simulator]:
    """Return the kind of a problem or workload, and the simulator of that kind.

    Raises
    ------
    Unsupported
        If the problem or workload has no simulator.
    """
    for kind in kinds():
        simulator = kind.simulator
        if simulator is not None and isinstance(world, simulator.world):
            if isinstance(world, Problem):
                refuse_subclass(world)
            return kind.name, simulator
    able = ", ".join(f"{kind} ({one.world.__name__})" for kind, one in SIMULATORS.items())
    raise Unsupported(
        f"simulate: {getattr(world, 'kind', type(world).__name__)} has no simulator; there are"
        f" {able}"
    )
