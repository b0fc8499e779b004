"""What belongs to one kind of problem, as one value, and the values that it consists of."""

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

# -------------------------------------------------------------------------- what `sensitivity` adds


@dataclass(frozen=True)
class Perturbation:
    """One more unit of one resource.

    Parameters
    ----------
    field
        The problem's field that changes.
    unit
        What is added, in words.
    apply
        Takes a problem and returns the new value of the field, or None where the problem makes no
        use of it.
    """

    field: str
    unit: str
    apply: Callable[[Any], Any]


FASTER = 0.99
"""Factor on seconds that are one per cent less."""


def more(field: str, unit: str, change: Callable[[Any], Any]) -> Perturbation:
    """Return the perturbation that changes the value of a field, where it is set and changes by
    that.
    """

    def apply(problem: Any) -> Any:
        value = getattr(problem, field)
        changed = None if value is None else change(value)
        return None if changed is None or np.all(changed == value) else changed

    return Perturbation(field, unit, apply)


def of_each(field: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what changes a field of every object of a tuple that has it."""

    def changed(one: Any) -> Any:
        value = getattr(one, field)
        new = None if value is None else change(value)
        return one if new == value else replace(one, **{field: new})

    return lambda many: tuple(map(changed, many))


def faster(field: str, what: str) -> Perturbation:
    """Return the perturbation that takes one per cent off the seconds of a field."""
    return more(field, f"{what} 1 % faster", lambda seconds: FASTER * seconds)


def likelier(field: str, most: float) -> Perturbation:
    """Return the perturbation that raises acceptance rates by 0.01, up to the most that is
    allowed.
    """
    return more(
        field,
        "+0.01 acceptance rate",
        lambda rates: np.minimum(rates + 0.01, np.maximum(rates, most)),
    )


# ------------------------------------------------------------------------- what `robustness` varies

Interval = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """Acceptance rates, and perhaps output lengths, that lie in an interval.

    Parameters
    ----------
    vary
        Function of a problem, a plan, acceptance rates and a factor of all output lengths; returns
        the problem so changed, and the plan with whatever it declares adapted. Where the kind has
        output lengths, the rates may be None: the problem's.
    shape
        Of the acceptance rates of a problem.
    zero, one
        Whether these acceptance rates are allowed.
    longest_output
        The longest output of a problem, in tokens; None: the kind has no output lengths.
    longer_is_worse
        Function of a problem: whether longer outputs improve no plan, so that the largest factor is
        the worst.
    worst
        Function of a problem, a plan, the interval of rates and the factor; returns rates among
        which the worst lies, and whether that is certain. None: the objective rises with every
        rate, and the lower end is the worst.
    """

    vary: Callable[[Any, Any, Any, float], tuple[Problem, Plan]]
    shape: Callable[[Any], tuple[int, ...]]
    zero: bool = True
    one: bool = False
    longest_output: Callable[[Any], int] | None = None
    longer_is_worse: Callable[[Any], bool] = lambda problem: True
    worst: Callable[[Any, Any, Interval, float], tuple[list[Any], bool]] | None = None


# ---------------------------------------------------------------------------- what `simulate` plays

_COMMON = {"seed", "replications", "callback"}


@dataclass(frozen=True, kw_only=True)
class Simulator:
    """A simulator of plans, or of policies on workloads.

    Parameters
    ----------
    world
        What a plan or policy is played on: a type of problem or workload.
    module
        Whose function `simulate` it is, loaded when something is played.
    policies
        The names that it takes besides plans.
    workloads
        The families of worlds that these policies meet.
    """

    world: type[Any]
    module: str
    policies: tuple[str, ...] = ()
    workloads: tuple[Family, ...] = ()

    @property
    def play(self) -> Callable[..., Simulation]:
        """The function of a world, a plan or policy and, by keyword, seed, replications, callback
        and options.
        """
        found: Callable[..., Simulation] = import_module(self.module).simulate
        return found

    @property
    def options(self) -> tuple[str, ...]:
        """Keywords that this simulator has of its own."""
        keywords = (
            p.name
            for p in inspect.signature(self.play).parameters.values()
            if p.kind is p.KEYWORD_ONLY
        )
        return tuple(name for name in keywords if name not in _COMMON)

    @property
    def settings(self) -> dict[str, Any]:
        """The types of those options that text can express."""
        hints = get_type_hints(self.play)
        return {name: hints[name] for name in self.options if _is_plain(hints[name])}


def _is_plain(hint: Any) -> bool:
    """Return whether text can express a type."""
    if get_origin(hint) is Literal or hint in (bool, int, float, str):
        return True
    members = get_args(hint)
    return NoneType in members and all(one is NoneType or _is_plain(one) for one in members)


# ----------------------------------------------------------------------- all that belongs to a kind


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Everything that differs from one kind of problem to another: all else in the package asks
    here.

    Parameters
    ----------
    problem
        The problem class; it names the kind and its plan class.
    methods
        Its methods in the order in which they are listed; `solve` takes the first that can where
        none is named.
    families
        Where its problems come from.
    rows
        The rows of a plan for tables, all with the same keys: one per task, request, client, chunk
        or state.
    formulation
        How its problems are stated as programs; None: they are not.
    view
        Module whose `VIEW` says how plans are printed and drawn, loaded when something is; None: a
        line per field.
    strategies
        Module whose `problems` and `plans` are hypothesis strategies, loaded when tests ask; None:
        there are none.
    relations
        Module whose `RELATIONS` says how optima change with a problem, loaded when tests ask; None:
        there are none.
    choices
        The fields to replace for each other choice that a problem could leave to the plan at no
        cost; None: none.
    perturbations
        What `sensitivity` adds, one at a time.
    uncertainty
        What `robustness` varies; None: nothing.
    simulator
        What `simulate` plays plans with; None: nothing.
    from_trace
        How the requests of a trace become a problem; None: a trace does not say enough.
    from_runtimes
        Which fields of a problem the runtimes of a file give, and their place for messages; None:
        none.
    from_deployment
        How what a user has becomes a problem, given a seed; None: it does not determine one.
    advice
        Module whose `advise` says what follows for such a problem, and takes clients, their devices
        and costs; None: the plan is all.
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
        """The kind's name in files and on the command line."""
        return self.problem.kind

    @property
    def plan(self) -> type[Plan]:
        """The plan class."""
        return self.problem.plan_type
