"""A reference formulation of draft stopping as a linear program over the histories of scores."""

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
    """Return the linear program as a Pyomo model.

    The variables are the number of rounds and, for each history of scores, the number of rounds
    that draft another token after the history. The total time is fixed at the duration of one round
    without drafts.

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
    )  # rounds that draft another token after a history

    program.rate = pyo.Objective(
        expr=program.rounds
        + sum(float(gains[t][h]) * program.drafts[t, h] for t, h in program.histories),
        sense=pyo.maximize,
    )
    # The rounds and their drafts use exactly the available time.
    program.second = pyo.Constraint(
        expr=program.rounds
        + sum(
            float(prepared.times[t] * masses[t][h]) * program.drafts[t, h]
            for t, h in program.histories
        )
        == 1.0
    )
    # A round that drafts after a history has also drafted after the preceding history.
    program.before = pyo.Constraint(
        program.histories,
        rule=lambda p, t, h: p.drafts[t, h] <= (p.drafts[t - 1, h // bins] if t > 0 else p.rounds),
    )
    return program


def read(problem: DraftStoppingProblem, program: Any, value: Value) -> DraftStoppingPlan:
    """Return the plan that corresponds to a solution of the program.

    The plan drafts another token after a history if more than half of the rounds in the solution
    do.
    """
    prepared = prepare(problem)
    half = 0.5 * value(program.rounds)
    goes = [
        np.array([value(program.drafts[t, h]) > half for h in range(prepared.scores.bins**t)])
        for t in range(prepared.most)
    ]
    return automaton_of(prepared, goes[::-1])


FORMULATION = Formulation(formulate, read)
