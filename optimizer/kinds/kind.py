"""What belongs to one kind of problem, as one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specopt.instances.deployment.deployment import Deployment
from specopt.instances.deployment.proposal import Proposal
from specopt.instances.family import Family
from specopt.instances.traces.problem import FromTrace
from specopt.kinds.perturbation import Perturbation
from specopt.kinds.simulator import Simulator
from specopt.kinds.uncertainty import Uncertainty
from specopt.models.problem import Plan, Problem
from specopt.solvers.formulation import Formulation
from specopt.solvers.method import Method

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Everything that differs from one kind of problem to another: all else in the package asks here.

    Parameters
    ----------
    problem
        The problem class; it names the kind and its plan class.
    methods
        Its methods in the order in which they are listed; `solve` takes the first that can where none is named.
    families
        Where its problems come from.
    rows
        The rows of a plan for tables, all with the same keys: one per task, request, client, chunk or state.
    formulation
        How its problems are stated as programs; None: they are not.
    view
        Module whose `VIEW` says how plans are printed and drawn, loaded when something is; None: a line per field.
    strategies
        Module whose `problems` and `plans` are hypothesis strategies, loaded when tests ask; None: there are none.
    choices
        The fields to replace for each other choice that a problem could leave to the plan at no cost; None: none.
    perturbations
        What `sensitivity` adds, one at a time.
    uncertainty
        What `robustness` varies; None: nothing.
    simulator
        What `simulate` plays plans with; None: nothing.
    from_trace
        How the requests of a trace become a problem; None: a trace does not say enough.
    from_runtimes
        Which fields of a problem the runtimes of a file give, and their place for messages; None: none.
    from_deployment
        How what a user has becomes a problem, given a seed; None: it does not determine one.
    """

    problem: type[Problem]
    methods: tuple[type[Method], ...]
    families: tuple[Family, ...]
    rows: Callable[[Any], Iterator[Row]]
    formulation: Formulation | None = None
    view: str | None = None
    strategies: str | None = None
    choices: Callable[[Any], Sequence[Mapping[str, Any]]] | None = None
    perturbations: tuple[Perturbation, ...] = ()
    uncertainty: Uncertainty | None = None
    simulator: Simulator | None = None
    from_trace: FromTrace | None = None
    from_runtimes: Callable[[Mapping[str, Any], str], dict[str, Any]] | None = None
    from_deployment: Callable[[Deployment, int], Proposal] | None = None

    @property
    def name(self) -> str:
        """The kind's name in files and on the command line."""
        return self.problem.kind

    @property
    def plan(self) -> type[Plan]:
        """The plan class."""
        return self.problem.plan_type
