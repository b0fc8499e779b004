"""Comparison of policies on the same random workloads: the performance of each policy, and its
difference from the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specopt.api.scan import scan
from specopt.api.simulate import simulate, simulator_of
from specopt.models.arguments import sequence
from specopt.models.errors import InvalidInput
from specopt.models.extras import pyarrow
from specopt.models.fields import describe
from specopt.models.late import Shown
from specopt.solvers.simulation import Estimate, Simulation


@dataclass(frozen=True)
class PolicyComparison(Shown):
    """Performance of several policies on the same workloads.

    Parameters
    ----------
    simulations
        Simulations by world name, in the order of the policies.
    """

    simulations: Mapping[str, Sequence[Simulation]]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per world and policy: the mean and paired difference, with 95 % intervals.

        Both refer to the main quantity of the simulation. The difference from the first policy is
        computed in each replication, because the same seed gives both policies the same random
        numbers.
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
    """Simulate policies on workloads with the same random numbers.

    Parameters
    ----------
    policies
        Names, policies of specopt, or instances of `specopt.Policy`. Differences are relative to
        the first policy.
    worlds
        Workloads, or problems with policies: a mapping by name, or a sequence whose entries are
        numbered.
    seed
        Seed of all random numbers, independent of the policy.
    options
        Options of the simulator, such as replications, devices or rounds; see `simulate`.

    Raises
    ------
    InvalidInput
        If no policy or no world is given, or the simulator rejects an argument.
    Unsupported
        If a world has no simulator.
    """
    policies = sequence("policies", policies)
    if not isinstance(worlds, Iterable):
        raise InvalidInput(f"worlds: expected a list of workloads, got {describe(worlds)}")
    named = (
        worlds
        if isinstance(worlds, Mapping)
        else {_name(place, one): one for place, one in enumerate(worlds)}
    )
    if not policies or not named:
        raise InvalidInput(
            "compare_policies: expected at least one policy and one workload, got none"
        )

    def play(pair: tuple[Any, Any], *_: object) -> Simulation:
        return simulate(*pair, seed=seed, **options)

    return PolicyComparison(
        {
            name: scan([(name, (world, policy)) for policy in policies], play)
            for name, world in named.items()
        }
    )


def _name(place: int, world: Any) -> str:
    return getattr(world, "name", None) or f"{simulator_of(world)[0]} {place + 1}"


def _difference(one: Simulation, first: Simulation) -> Estimate:
    if len(one.samples) != len(first.samples):
        raise InvalidInput(
            f"replications: expected {len(first.samples)} of every policy, got {len(one.samples)}"
        )
    return Estimate.of(one.samples - first.samples)


def _interval(name: str, estimate: Estimate) -> dict[str, float]:
    low, high = estimate.confidence_interval
    return {name: estimate.mean, f"{name}_low": low, f"{name}_high": high}
