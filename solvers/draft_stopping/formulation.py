"""A readable reference for draft stopping: a linear program over the histories of scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from specopt.models.draft_stopping.problem import DraftStoppingPlan, DraftStoppingProblem
from specopt.models.errors import Unsupported
from specopt.solvers.draft_stopping.histories import automaton_of, count_histories, forwards
from specopt.solvers.draft_stopping.prepare import prepare
from specopt.solvers.formulation import Formulation, Value

MAX_HISTORIES = 20_000


def formulate(problem: DraftStoppingProblem) -> Any:
    """Return the program as a Pyomo model: how many rounds there are, and after which histories
    they go on.

    The time that they share is that of a round without drafts.

    Raises
    ------
    Unsupported
        If there are more than `MAX_HISTORIES` histories.
    """
    import pyomo.environ as pyo

    bins = problem.scores.bins
    if count_histories(bins, problem.max_draft_tokens) > MAX_HISTORIES:
        raise Unsupported(
            f"formulation: the problem has more than {MAX_HISTORIES:,} histories of scores"
        )
    prepared = prepare(problem)
    gains, masses = forwards(prepared, lambda: None)
    program = pyo.ConcreteModel()
    program.unit, program.offset = 1.0 / prepared.seconds, 0.0
    program.histories = pyo.Set(
        initialize=[(t, h) for t in range(prepared.most) for h in range(len(gains[t]))]
    )
    program.rounds = pyo.Var(domain=pyo.NonNegativeReals)
    program.drafts = pyo.Var(
        program.histories, domain=pyo.NonNegativeReals
    )  # rounds that go on after a history

    program.rate = pyo.Objective(
        expr=program.rounds
        + sum(float(gains[t][h]) * program.drafts[t, h] for t, h in program.histories),
        sense=pyo.maximize,
    )
    # Rounds and their drafts take the time that there is.
    program.second = pyo.Constraint(
        expr=program.rounds
        + sum(
            float(prepared.times[t] * masses[t][h]) * program.drafts[t, h]
            for t, h in program.histories
        )
        == 1.0
    )
    # Who drafts after a history has drafted after the one before.
    program.before = pyo.Constraint(
        program.histories,
        rule=lambda p, t, h: p.drafts[t, h] <= (p.drafts[t - 1, h // bins] if t > 0 else p.rounds),
    )
    return program


def read(problem: DraftStoppingProblem, program: Any, value: Value) -> DraftStoppingPlan:
    """Return the plan of a program's solution: it goes on where at least half of the rounds do."""
    prepared = prepare(problem)
    half = 0.5 * value(program.rounds)
    goes = [
        np.array([value(program.drafts[t, h]) > half for h in range(prepared.scores.bins**t)])
        for t in range(prepared.most)
    ]
    return automaton_of(prepared, goes[::-1])


FORMULATION = Formulation(formulate, read)
