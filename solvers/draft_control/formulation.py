"""Draft control as a linear program over occupation measures, written to be read (paper 3, Eq. 12)."""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.draft_control import DraftControlPlan, DraftControlProblem
from specopt.solvers.draft_control.linear_program import VISITED
from specopt.solvers.draft_control.prepare import prepare
from specopt.solvers.formulation import Formulation, Value


def formulate(problem: DraftControlProblem) -> Any:
    """Return the program as a Pyomo model: tokens of a measure x(s, a) whose iterations take one second in all.

    The states that are left for ever have no measure.
    """
    import pyomo.environ as pyo

    prepared = prepare(problem)
    tokens, seconds, _, _ = prepared.all_actions()
    chain = prepared.transition
    program = pyo.ConcreteModel()
    program.unit, program.offset = 1.0, 0.0
    program.states = pyo.Set(initialize=[int(s) for s in prepared.recurrent])
    program.actions = pyo.RangeSet(0, tokens.shape[1] - 1)  # every draft length at one resolution, then the next
    program.visits = pyo.Var(program.states, program.actions, domain=pyo.NonNegativeReals)  # x(s, a), per second

    program.rate = pyo.Objective(
        expr=sum(float(tokens[s, a]) * program.visits[s, a] for s in program.states for a in program.actions),
        sense=pyo.maximize,
    )
    # Iterations take the second that there is.
    program.second = pyo.Constraint(
        expr=sum(float(seconds[s, a]) * program.visits[s, a] for s in program.states for a in program.actions) == 1.0
    )

    def visited(p: Any, s: int) -> Any:
        return sum(p.visits[s, a] for a in p.actions)

    # A state is left as often as it is entered, whatever is done there: y = y P.
    program.flow = pyo.Constraint(
        program.states,
        rule=lambda p, s: visited(p, s) == sum(float(chain[r, s]) * visited(p, r) for r in p.states if chain[r, s] > 0),
    )
    return program


def read(problem: DraftControlProblem, program: Any, value: Value) -> DraftControlPlan:
    """Return the plan of a program's solution: what is best at its rate where a state is hardly visited."""
    prepared = prepare(problem)
    tokens, seconds, lengths, indices = prepared.all_actions()
    measure = np.zeros(tokens.shape)
    for s in program.states:
        measure[s] = [value(program.visits[s, a]) for a in program.actions]
    rate = float((tokens * measure).sum() / (seconds * measure).sum())
    choice, visits = np.argmax(measure, axis=1), measure.sum(axis=1)
    rare = visits <= VISITED * visits.sum()
    choice[rare] = np.argmax(tokens[rare] - rate * seconds[rare], axis=1)
    return prepared.plan(lengths[choice], indices[choice])


FORMULATION = Formulation(formulate, read)
