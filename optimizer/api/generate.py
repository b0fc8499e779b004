"""Functions that create problems from named families, request traces and deployments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from specopt.api.plugins import plugged_families, plugged_family
from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Proposal
from specopt.instances.family import Family
from specopt.instances.traces.problem import FromTrace
from specopt.kinds import KINDS, kind_of, kinds, names_with
from specopt.models.arguments import one_of
from specopt.models.errors import InvalidInput, did_you_mean
from specopt.models.fields import describe
from specopt.models.problem import Problem
from specopt.models.workload import Workload

FAMILIES = {family.name: family for kind in KINDS for family in kind.families}
"""Built-in problem families, by name."""

WORKLOADS = {
    family.name: family
    for kind in KINDS
    if kind.simulator is not None and issubclass(kind.simulator.world, Workload)
    for family in kind.simulator.workloads
}
"""Built-in families of workloads on which policies can be simulated, by name."""


def family_named(name: str) -> Family | None:
    """Return the built-in or plug-in family named KIND/FAMILY, or None if it does not exist.

    Raises
    ------
    BrokenPlugin
        If the plug-in with that name cannot be used.
    """
    return FAMILIES.get(name) or plugged_family(name)


def known_family(where: str, name: object) -> Family:
    """Return the family with a given name, which must exist.

    Raises
    ------
    InvalidInput
        If the family does not exist. The error message begins with `where`.
    """
    found = family_named(name) if isinstance(name, str) else None
    if found is None:
        meant = did_you_mean(name, [one.name for one in families()])
        raise InvalidInput(
            f"{where}: expected KIND/FAMILY, for example serving-latency/paper-1, got"
            f" {describe(name)}{meant}; `specopt generate --help` lists all families"
        )
    return found


def families(kind: str | None = None) -> tuple[Family, ...]:
    """Return the families of one kind, or of all kinds. Families from plug-ins come last.

    Raises
    ------
    InvalidInput
        If the kind does not exist.
    """
    start = "" if kind is None else f"{kind_of(kind).name}/"
    found = (*FAMILIES.values(), *plugged_families())
    return tuple(one for one in found if one.name.startswith(start))


def generate(family: str, *, seed: int = 0, **parameters: Any) -> Problem:
    """Generate a problem from a named family. Equal parameters and seeds yield equal problems.

    Parameters
    ----------
    family
        Name of the form KIND/FAMILY, for example ``"serving-latency/paper-1"``.
    seed
        Seed of NumPy's default random number generator.
    parameters
        Parameters of the family.

    Raises
    ------
    InvalidInput
        If the family or a parameter does not exist.
    """
    problem: Problem = known_family("family", family).generate(seed=seed, **parameters)
    return problem


def workload(family: str, *, seed: int = 0, **parameters: Any) -> Workload:
    """Generate a workload from a named family. Policies can be simulated on the workload.

    Raises
    ------
    InvalidInput
        If the family or a parameter does not exist.
    """
    found: Workload = WORKLOADS[one_of("family", family, WORKLOADS)].generate(
        seed=seed, **parameters
    )
    return found


def from_trace(kind: str) -> FromTrace:
    """Return the rules for creating problems of a given kind from request traces.

    Raises
    ------
    InvalidInput
        If problems of this kind cannot be created from traces.
    """
    able = {one.name: one.from_trace for one in kinds() if one.from_trace is not None}
    if kind not in able:
        raise InvalidInput(f"kind: expected one of {', '.join(able)}, got {describe(kind)}")
    return able[kind]


def from_deployment() -> dict[str, Callable[[Deployment, int], Proposal]]:
    """Return the functions that create a problem from a deployment, by name of the kind."""
    return {kind.name: kind.from_deployment for kind in kinds() if kind.from_deployment is not None}


def with_runtimes(problem: Problem, data: object, where: str = "runtimes") -> Problem:
    """Return a copy of a problem that uses measured runtimes and the models that were measured.

    Parameters
    ----------
    problem
        Problem of a kind that uses runtimes.
    data
        Output of `specopt fit` for the draft and verify models, or
        ``{"draft": runtime, "verify": runtime}``.
    where
        Name of the data in error messages.

    Raises
    ------
    InvalidInput
        If problems of this kind have no runtimes, or if the data has the wrong form.
    """
    fields = kind_of(problem).from_runtimes
    if fields is None:
        raise InvalidInput(
            f"{where}: expected a problem of kind {names_with('from_runtimes')}, got {problem.kind}"
        )
    if not isinstance(data, Mapping):
        raise InvalidInput(
            f"{where}: expected an object with draft and verify, got {describe(data)}"
        )
    return type(problem).from_dict(problem.to_dict() | fields(data, where))
