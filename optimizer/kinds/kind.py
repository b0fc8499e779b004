"""Classes that are used to declare a kind of problem."""

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
    """A change to a problem that adds one unit of a resource.

    Parameters
    ----------
    field
        Name of the problem field that changes.
    unit
        Description of the added unit.
    apply
        Function that maps a problem to the new value of the field, or to None if the problem does
        not use the field.
    """

    field: str
    unit: str
    apply: Callable[[Any], Any]


FASTER = 0.99
"""Factor that reduces a time by one per cent."""


def more(field: str, unit: str, change: Callable[[Any], Any]) -> Perturbation:
    """Return a perturbation that applies a function to a field.

    The perturbation does not apply if the field is None or would not change.
    """

    def apply(problem: Any) -> Any:
        value = getattr(problem, field)
        changed = None if value is None else change(value)
        return None if changed is None or np.all(changed == value) else changed

    return Perturbation(field, unit, apply)


def of_each(field: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that changes a field in every object of a tuple.

    Objects in which the field is None are left unchanged.
    """

    def changed(one: Any) -> Any:
        value = getattr(one, field)
        new = None if value is None else change(value)
        return one if new == value else replace(one, **{field: new})

    return lambda many: tuple(map(changed, many))


def added(field: str, unit: str, amount: float) -> Perturbation:
    """Return a perturbation that adds an amount to a numeric field."""
    return more(field, unit, lambda value: value + amount)


def faster(field: str, part: str) -> Perturbation:
    """Return a perturbation that reduces the times in a field by one per cent.

    `part` names the resource that becomes faster.
    """
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
"""Perturbations for kinds in which clients share a budget of tokens per verification round."""


# --------------------------------------------------------------------------------- for `robustness`

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Description of the uncertain values of a kind, used by `robustness`.

    Acceptance rates, and output lengths if the kind has them, vary within intervals.

    Parameters
    ----------
    vary
        Function that maps a problem, a plan, acceptance rates and a factor for all output lengths
        to a pair: the changed problem, and the plan with updated declared values. If the kind has
        output lengths, the rates may be None, which leaves the problem's rates unchanged.
    shape
        Function that maps a problem to the shape of its array of acceptance rates.
    zero
        Whether the acceptance rate 0 is allowed.
    one
        Whether the acceptance rate 1 is allowed.
    longest_output
        Function that maps a problem to the length of its longest output, in tokens. None if the
        kind has no output lengths.
    longer_is_worse
        Function that returns whether longer outputs never improve a plan for a problem. In that
        case, the largest output factor is the worst case.
    worst
        Function of a problem, a plan, an interval of acceptance rates and an output factor. It
        returns a pair: candidates for the worst rates, and whether the worst rates are certain to
        be among them. None if the objective improves with every rate, in which case the lower end
        of the interval is the worst case.
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
        Name of the module that contains the function `simulate`. The module is loaded on demand.
    policies
        Names of the built-in policies.
    workloads
        Families of workloads on which policies can be simulated.
    """

    world: type[Any]
    module: str
    policies: tuple[str, ...] = ()
    workloads: tuple[Family, ...] = ()

    @property
    def play(self) -> Callable[..., Simulation]:
        """The function that simulates a plan on a problem or a policy on a workload.

        Its keyword arguments are the seed, the number of replications, a callback, and options that
        are specific to the simulator.
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
        """Types of the options whose values can be specified as strings, by option name."""
        hints = get_type_hints(self.play)
        return {name: hints[name] for name in self.options if _is_plain(hints[name])}


def _is_plain(hint: Any) -> bool:
    """Return whether values of a type can be specified as strings on the command line."""
    if get_origin(hint) is Literal or hint in (bool, int, float, str, NoneType):
        return True
    members = get_args(hint)
    return NoneType in members and all(map(_is_plain, members))


# ----------------------------------------------------------------------------------------- the kind


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Declaration of a kind of problem, which contains everything specific to the kind.

    Parameters
    ----------
    problem
        Class of the problems, which defines the name of the kind and the class of its plans.
    methods
        Methods, in the order in which they are listed for users. By default, `solve` uses the first
        method that can solve the problem.
    families
        Families that generate problems.
    rows
        Function that maps a plan to its table rows, which all have the same keys. There is one row
        per task, request, client, chunk or state.
    formulation
        Formulation of the problems as a model for other solvers; None if there is none.
    view
        Name of the module whose attribute `VIEW` prints and draws plans. The module is loaded on
        demand. None to print one line per field.
    strategies
        Name of the module that contains the Hypothesis strategies `problems` and `plans`. The
        module is loaded on demand. None if there is no such module.
    relations
        Name of the module whose attribute `RELATIONS` states how the optimum changes if a problem
        is changed. The module is loaded on demand. None if there is no such module.
    choices
        Function that maps a problem to alternatives for field values that the problem fixes. Each
        alternative is a mapping of the fields to replace. None if there are no alternatives.
    perturbations
        Changes that `sensitivity` applies to a problem, one at a time.
    uncertainty
        Description of the values that `robustness` varies; None if the kind has no uncertain
        values.
    simulator
        Simulator that `simulate` uses; None if the kind has no simulator.
    from_trace
        Rules for creating a problem from the requests in a trace; None if traces lack the necessary
        data.
    from_runtimes
        Function that converts the runtimes in a file to problem fields. The second argument of the
        function is the name of the runtimes in error messages. None if the problems have no
        runtimes.
    from_deployment
        Function that maps a deployment and a seed to a proposed problem; None if problems cannot be
        created from deployments.
    advice
        Name of the module whose function `advise` gives advice on a problem that was created from a
        deployment with clients, devices and costs. None if there is no such module.
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
        """The name of the kind, as used in files and on the command line."""
        return self.problem.kind

    @property
    def plan(self) -> type[Plan]:
        """The class of plans for problems of the kind."""
        return self.problem.plan_type
