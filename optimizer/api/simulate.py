"""Simulation of plans and policies.

This module contains the common entry point for all simulators. It also compares policies that are
simulated with the same random numbers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from specopt.api.plugins import POLICIES, plugged
from specopt.api.scan import scan
from specopt.console.progress import end_progress, print_step, showing_kernels
from specopt.kinds import KINDS, kinds
from specopt.kinds.kind import Simulator
from specopt.models.arguments import sequence
from specopt.models.errors import InvalidInput, Unsupported
from specopt.models.extras import pyarrow
from specopt.models.fields import describe
from specopt.models.judge import verify
from specopt.models.late import Shown
from specopt.models.problem import Plan, Problem, refuse_subclass
from specopt.models.result import Result
from specopt.solvers.simulation import Estimate, Simulation

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
    """Estimate the performance of a plan or a policy by repeated random simulation.

    Parameters
    ----------
    world
        Problem or workload to simulate. For `fair-goodput`, `verification-batch` and
        `prompt-chunking`, this is a workload on which policies are simulated. For other kinds with
        a simulator, such as `serving-latency`, it is a problem.
    policy
        A plan for the problem, a result that contains such a plan, or a policy. A policy is
        specified by name or as an object, which may be an instance of a subclass of
        `specopt.Policy`.
    seed
        Seed for all random numbers. The random numbers do not depend on the plan or policy, which
        makes paired comparisons of policies possible.
    replications
        Number of replications; None for the simulator's default.
    verbose
        Whether to print progress to stderr.
    options
        Options of the simulator, such as `drop_finished`, `iterations` or `devices`.

    Raises
    ------
    InvalidInput
        If an argument is outside its domain, or if the simulator does not have one of the options.
        Also if the result belongs to another problem, contains no plan, or contains an infeasible
        plan.
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
                f"{option}: the simulator of {name} has no such option (got {value!r}); its"
                f" options: {has}"
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
    """Return the name of the kind of a problem or workload, and the simulator for that kind.

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
        f"simulate: {getattr(world, 'kind', type(world).__name__)} has no simulator; these"
        f" kinds have one: {able}"
    )


@dataclass(frozen=True)
class PolicyComparison(Shown):
    """Simulated performance of several policies on the same workloads.

    Parameters
    ----------
    simulations
        Simulations by name of the workload or problem. Each list is in the order of the policies.
    """

    simulations: Mapping[str, Sequence[Simulation]]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Table rows, one per workload and policy.

        A row contains the mean of the simulation's main quantity, its mean difference from the
        first policy, and 95 % confidence intervals of both. The differences are paired by
        replication, because every policy receives the same random numbers.
        """
        return [
            {
                "world": world,
                "policy": one.policy,
                "quantity": one.quantity,
                "replications": len(one.samples),
                **_interval("mean", one.headline),
                **_interval("difference", _difference(one, first)),
            }
            for world, (first, *others) in self.simulations.items()
            for one in (first, *others)
        ]

    def to_arrow(self) -> Any:
        """Return the rows as an Arrow table."""
        return pyarrow().Table.from_pylist(self.rows)


def compare_policies(
    policies: Sequence[Any],
    worlds: Mapping[str, Any] | Iterable[Any],
    *,
    seed: int = 0,
    **options: Any,
) -> PolicyComparison:
    """Simulate policies on workloads, using the same random numbers for every policy.

    Parameters
    ----------
    policies
        Names of policies, built-in policies, or instances of `specopt.Policy`. Differences are
        relative to the first policy.
    worlds
        Workloads, or problems that policies can serve. They are given as a mapping by name or as a
        sequence. The entries of a sequence are numbered instead of named.
    seed
        Seed for all random numbers, which do not depend on the policy.
    options
        Options of the simulator, such as replications, devices or rounds; see `simulate`.

    Raises
    ------
    InvalidInput
        If there is no policy or no workload, or if the simulator rejects an argument.
    Unsupported
        If there is no simulator for a workload or problem.
    """
    policies = sequence("policies", policies)
    if not isinstance(worlds, Iterable):
        raise InvalidInput(f"worlds: expected a list of workloads, got {describe(worlds)}")
    named = (
        worlds
        if isinstance(worlds, Mapping)
        else {
            getattr(one, "name", None) or f"{simulator_of(one)[0]} {number}": one
            for number, one in enumerate(worlds, 1)
        }
    )
    if not policies or not named:
        raise InvalidInput(
            "compare_policies: expected at least one"
            f" {'workload' if policies else 'policy'}, got none"
        )

    def play(pair: tuple[Any, Any], *_: object) -> Simulation:
        return simulate(*pair, seed=seed, **options)

    return PolicyComparison(
        {
            name: scan([(name, (world, policy)) for policy in policies], play)
            for name, world in named.items()
        }
    )


def _difference(one: Simulation, first: Simulation) -> Estimate:
    if len(one.samples) != len(first.samples):
        raise InvalidInput(
            f"replications: expected {len(first.samples)} replications of every policy, got"
            f" {len(one.samples)}"
        )
    return Estimate.of(one.samples - first.samples)


def _interval(name: str, estimate: Estimate) -> dict[str, float]:
    low, high = estimate.confidence_interval
    return {name: estimate.mean, f"{name}_low": low, f"{name}_high": high}
