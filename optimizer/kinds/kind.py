"""The declaration of a kind of problem, and the values that it consists of."""

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
    """One more unit of one resource.

    Parameters
    ----------
    field
        Name of the problem's field that changes.
    unit
        Description of the added unit.
    apply
        Function of a problem that returns the new value of the field, or None if the problem does
        not use it.
    """

    field: str
    unit: str
    apply: Callable[[Any], Any]


FASTER = 0.99
"""Factor of times that are reduced by one per cent."""


def more(field: str, unit: str, change: Callable[[Any], Any]) -> Perturbation:
    """Return the perturbation that changes a field, unless it is None or stays the same."""

    def apply(problem: Any) -> Any:
        value = getattr(problem, field)
        changed = None if value is None else change(value)
        return None if changed is None or np.all(changed == value) else changed

    return Perturbation(field, unit, apply)


def of_each(field: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that changes a field of every object of a tuple, unless it is None."""

    def changed(one: Any) -> Any:
        value = getattr(one, field)
        new = None if value is None else change(value)
        return one if new == value else replace(one, **{field: new})

    return lambda many: tuple(map(changed, many))


def faster(field: str, part: str) -> Perturbation:
    """Return the perturbation that reduces the seconds of a field by one per cent."""
    return more(field, f"{part} 1 % faster", lambda seconds: FASTER * seconds)


ROUNDS_OF_CLIENTS = (
    more("budget_tokens", "+1 token verified per round", lambda tokens: tokens + 1),
    more("max_draft_tokens", "+1 draft token of each client", lambda tokens: tokens + 1),
    more(
        "acceptance_rates",
        "+0.01 acceptance rate",
        lambda rates: np.minimum(rates + 0.01, np.maximum(rates, 0.999)),
    ),
)
"""Perturbations of the kinds in which clients share the verified tokens of a round."""


# --------------------------------------------------------------------------------- for `robustness`

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Uncertain acceptance rates, and possibly output lengths, in an interval.

    Parameters
    ----------
    vary
        Function of a problem, a plan, acceptance rates and a factor of all output lengths. It
        returns the changed problem, and the plan with its declared values updated. If the kind has
        output lengths, the rates may be None, which leaves them unchanged.
    shape
        Function of a problem that returns the shape of its acceptance rates.
    zero
        Whether the acceptance rate 0 is allowed.
    one
        Whether the acceptance rate 1 is allowed.
    longest_output
        Function of a problem that returns its longest output in tokens; None if the kind has no
        output lengths.
    longer_is_worse
        Function of a problem that returns whether longer outputs improve no plan, so that the
        largest factor is the worst.
    worst
        Function of a problem, a plan, the interval of rates and the factor. It returns candidates
        for the worst rates, and whether they certainly contain the worst. None if the objective
        improves with every rate, so that the lower end is the worst.
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
    """A simulator of plans, or of policies on workloads.

    Parameters
    ----------
    world
        Type of problem or workload on which plans or policies are simulated.
    module
        Module of the function `simulate`, loaded on demand.
    policies
        Names of the policies.
    workloads
        Families of worlds for these policies.
    """

    world: type[Any]
    module: str
    policies: tuple[str, ...] = ()
    workloads: tuple[Family, ...] = ()

    @property
    def play(self) -> Callable[..., Simulation]:
        """The function of a world and a plan or policy, with keywords for seed, replications,
        callback and options.
        """
        found: Callable[..., Simulation] = import_module(self.module).simulate
        return found

    @property
    def options(self) -> tuple[str, ...]:
        """Keywords that only this simulator has."""
        keywords = (
            p.name
            for p in inspect.signature(self.play).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        )
        return tuple(name for name in keywords if name not in _COMMON)

    @property
    def settings(self) -> dict[str, Any]:
        """Types of the options that text can express."""
        hints = get_type_hints(self.play)
        return {name: hints[name] for name in self.options if _is_plain(hints[name])}


def _is_plain(hint: Any) -> bool:
    """Return whether text can express a type."""
    if get_origin(hint) is Literal or hint in (bool, int, float, str, NoneType):
        return True
    members = get_args(hint)
    return NoneType in members and all(map(_is_plain, members))


# ----------------------------------------------------------------------------------------- the kind


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Declaration of a kind of problem. Everything that depends on the kind is declared here.

    Parameters
    ----------
    problem
        Class of the problems, which defines the name of the kind and the class of its plans.
    methods
        Methods in the order in which they are listed. By default, `solve` uses the first one that
        can solve the problem.
    families
        Families of problems.
    rows
        Function of a plan that returns its rows for tables, all with the same keys: one per task,
        request, client, chunk or state.
    formulation
        Formulation of the problems for other solvers; None if there is none.
    view
        Module whose `VIEW` prints and draws plans, loaded on demand; None for one line per field.
    strategies
        Module whose `problems` and `plans` are Hypothesis strategies, loaded on demand; None if
        there are none.
    relations
        Module whose `RELATIONS` describe how optima change with a problem, loaded on demand; None
        if there are none.
    choices
        Function of a problem that returns, for each other choice that the problem could leave to
        the plan, the fields to replace; None if there are none.
    perturbations
        Resources that `sensitivity` increases, one at a time.
    uncertainty
        Values that `robustness` varies; None if there are none.
    simulator
        Simulator for `simulate`; None if there is none.
    from_trace
        Rules by which the requests of a trace become a problem; None if traces lack the data.
    from_runtimes
        Function of the runtimes in a file and their name for messages, which returns the fields of
        a problem; None if problems have no runtimes.
    from_deployment
        Function of a deployment and a seed that returns a problem; None if deployments do not
        determine one.
    advice
        Module whose `advise` gives advice for a problem made from a deployment with clients,
        devices and costs; None if there is none.
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
        """Name of the kind in files and on the command line."""
        return self.problem.kind

    @property
    def plan(self) -> type[Plan]:
        """Class of the plans."""
        return self.problem.plan_type
