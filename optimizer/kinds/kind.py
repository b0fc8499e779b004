"""Classes with which a kind of problem is declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Proposal
from specopt.instances.family import Family
from specopt.instances.traces.problem import FromTrace
from specopt.models.problem import Plan, Problem
from specopt.solvers.formulation import Formulation
from specopt.solvers.method import Method
from specopt.solvers.simulation import Simulation

Row = dict[str, Any]

# -------------------------------------------------------------------------------- for `sensitivity`


@dataclass(frozen=True)
class Perturbation:
    """A change that adds one unit to a resource.

    Parameters
    ----------
    field
        Name of the problem field that changes.
    unit
        Description of the added unit.
    apply
        Function of a problem that returns the new value of the field, or None if the problem does
        not use the field.
    """

    field: str
    unit: str
    apply: Callable[[Any], Any]


FASTER = 0.99
"""Factor by which times are multiplied when they are reduced by one per cent."""


def more(field: str, unit: str, change: Callable[[Any], Any]) -> Perturbation:
    """Return a perturbation of a field that applies only if the field is set and would change."""

    def apply(problem: Any) -> Any:
        value = getattr(problem, field)
        changed = None if value is None else change(value)
        return None if changed is None or np.all(changed == value) else changed

    return Perturbation(field, unit, apply)


def of_each(field: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that changes a field of every object in a tuple; None is left unchanged."""

    def changed(one: Any) -> Any:
        value = getattr(one, field)
        new = None if value is None else change(value)
        return one if new == value else replace(one, **{field: new})

    return lambda many: tuple(map(changed, many))


def added(field: str, unit: str, amount: float) -> Perturbation:
    """Return a perturbation that adds an amount to a field."""
    return more(field, unit, lambda value: value + amount)


def faster(field: str, part: str) -> Perturbation:
    """Return a perturbation that reduces the times in a field by one per cent."""
    return more(field, f"{part} 1 % faster", lambda seconds: FASTER * seconds)


ROUNDS_OF_CLIENTS = (
    added("budget_tokens", "+1 token verified per round", 1),
    added("max_draft_tokens", "+1 draft token of each client", 1),
    more(
        "acceptance_rates",
        "+0.01 acceptance rate",
        lambda rates: np.minimum(rates + 0.01, np.maximum(rates, 0.999)),
    ),
)
"""Perturbations for the kinds in which clients share the tokens verified in a round."""


# --------------------------------------------------------------------------------- for `robustness`

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Description of how acceptance rates, and possibly output lengths, vary within intervals.

    Parameters
    ----------
    vary
        Function of a problem, a plan, acceptance rates and a factor applied to all output
        lengths. The function returns the changed problem, and the plan with its declared values
        updated. If the kind has output lengths, the rates may be None, which leaves the rates of
        the problem unchanged.
    shape
        Function of a problem that returns the shape of its array of acceptance rates.
    zero
        Whether the acceptance rate 0 is allowed.
    one
        Whether the acceptance rate 1 is allowed.
    longest_output
        Function of a problem that returns its longest output, in tokens; None if the kind has no
        output lengths.
    longer_is_worse
        Function of a problem that returns whether longer outputs never improve a plan, so that
        the largest factor is the worst case.
    worst
        Function of a problem, a plan, the interval of rates and the factor. The function returns
        candidates for the worst rates, and whether the worst rates are certain to be among them.
        None if the objective improves with every rate, so that the lower end of the interval is the
        worst case.
    """

    vary: Callable[[Any, Any, Any, float], tuple[Problem, Plan]]
    shape: Callable[[Any], tuple[int, ...]]
    zero: bool = True
    one: bool = False
    longest_output: Callable[[Any], int] | None = None
    longer_is_worse: Callable[[Any], bool] = lambda problem: True
    worst: Callable[[Any, Any, Interval, float], tuple[list[Any], bool]] | None = None


# ----------------------------------------------------------------------------------- for `simulate`

_COMMON = {"seed", "replications", "callback"}


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """A simulator that runs plans on problems, or policies on workloads.

    Parameters
    ----------
    world
        Type of the problems or workloads on which plans or policies are simulated.
    module
        Name of the module that contains the function `simulate`, loaded on demand.
    policies
        Names of the policies.
    workloads
        Families of workloads on which the policies can be simulated.
    """

    world: type[Any]
    module: str
    policies: tuple[str, ...] = ()
    workloads: tuple[Family, ...] = ()

    @property
    def play(self) -> Callable[..., Simulation]:
        """The function that simulates a plan or policy on a problem or workload.

        The keyword arguments are the seed, the number of replications, a callback and options.
        """
        found: Callable[..., Simulation] = import_module(self.module).simulate
        return found

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options that are specific to this simulator."""
        keywords = (
            p.name
            for p in inspect.signature(self.play).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        )
        return tuple(name for name in keywords if name not in _COMMON)

    @property
    def settings(self) -> dict[str, Any]:
        """Types of the options whose values can be written as text, by option name."""
        hints = get_type_hints(self.play)
        return {name: hints[name] for name in self.options if _is_plain(hints[name])}


def _is_plain(hint: Any) -> bool:
    """Return whether values of a type can be written as text."""
    if get_origin(hint) is Literal or hint in (bool, int, float, str, NoneType):
        return True
    members = get_args(hint)
    return NoneType in members and all(map(_is_plain, members))


# ----------------------------------------------------------------------------------------- the kind


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Declaration of a kind of problem, containing everything that is specific to the kind.

    Parameters
    ----------
    problem
        Class of the problems, which defines the name of the kind and the class of its plans.
    methods
        Methods in the order in which they are listed. By default, `solve` uses the first method
        that can solve the problem.
    families
        Families that generate problems.
    rows
        Function of a plan that returns its table rows, all with the same keys: one row per task,
        request, client, chunk or state.
    formulation
        Formulation of the problems for other solvers; None if there is no formulation.
    view
        Name of the module whose `VIEW` prints and draws plans, loaded on demand; None to print
        one line per field.
    strategies
        Name of the module whose `problems` and `plans` are Hypothesis strategies, loaded on
        demand; None if there is no such module.
    relations
        Name of the module whose `RELATIONS` describe how optima change when a problem is changed,
        loaded on demand; None if there is no such module.
    choices
        Function of a problem that returns alternatives to the values that the problem fixes, each
        as a mapping of the fields to replace; None if the kind has no such alternatives.
    perturbations
        Changes that `sensitivity` makes to a problem, one at a time.
    uncertainty
        Values that `robustness` varies; None if the kind has no uncertain values.
    simulator
        Simulator used by `simulate`; None if there is no simulator.
    from_trace
        Rules by which a problem is made from the requests in a trace; None if traces lack the
        necessary data.
    from_runtimes
        Function that returns problem fields, given the runtimes in a file and a name for them that
        is used in error messages; None if problems have no runtimes.
    from_deployment
        Function of a deployment and a seed that returns a proposed problem; None if problems
        cannot be made from deployments.
    advice
        Name of the module whose `advise` gives advice on a problem made from a deployment with
        clients, devices and costs; None if there is no such module.
    """

    problem: type[Problem]
    methods: tuple[type[Method], ...]
    families: tuple[Family, ...]
    rows: Callable[[Any], Iterator[Row]]
    formulation: Formulation | None = None
    view: str | None = None
    strategies: str | None = None
    relations: str | None = None
    choices: Callable[[Any], Sequence[Mapping[str, Any]]] | None = None
    perturbations: tuple[Perturbation, ...] = ()
    uncertainty: Uncertainty | None = None
    simulator: Simulator | None = None
    from_trace: FromTrace | None = None
    from_runtimes: Callable[[Mapping[str, Any], str], dict[str, Any]] | None = None
    from_deployment: Callable[[Deployment, int], Proposal] | None = None
    advice: str | None = None

    @property
    def name(self) -> str:
        """The name of the kind in files and on the command line."""
        return self.problem.kind

    @property
    def plan(self) -> type[Plan]:
        """The class of the plans."""
        return self.problem.plan_type
