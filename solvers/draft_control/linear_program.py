"""A readable reference for draft control: a linear program over occupation measures, stated in
Pyomo and solved by HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.draft_control.problem import DraftControlPlan, DraftControlProblem
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, certify, first_actions
from specopt.solvers.draft_control.prepare import Prepared, prepare
from specopt.solvers.formulation import Formulation, Value, check_size
from specopt.solvers.method import Outcome
from specopt.solvers.pyomo_program import ByProgram, solve_program

ACCURACY = 1e-9

VISITED = 1e-7
"""Share of a state below which the program's tolerances say nothing about its action."""


@dataclass(frozen=True)
class LinearProgram(ByProgram, DraftControlMethod):
    """Maximise sum pi N x over measures pi(s) x(s, a) >= 0, scaled so that the seconds sum to a
    constant.

    The next state does not depend on the action. So the flow balance says that y(s) = sum over a of
    x(s, a) is constant where x counts in parts of the stationary distribution pi. Transitions may
    be rarer than HiGHS's tolerances: the balance itself would be lost among these. The bound comes
    from the rate found, as a price, not from HiGHS.
    """

    name = "linear-program"
    source = (
        "own; Eq. 12 of paper 3 as a linear fractional program (Charnes and Cooper 1962), HiGHS"
    )
    complexity = "a linear program of S A + S columns, 2 S + 1 rows"
    max_size = 100_000
    bytes_per_number = 1700.0
    bytes_per_part = 2500.0

    def search(self, prepared: Prepared, budget: Budget) -> Outcome:
        """State the program, solve it, and read policy and price."""
        program = formulate(prepared)
        budget.check()
        solved = solve_program(program, budget, ACCURACY, solver=self.solver)
        if not solved.has_solution:  # numbers too far apart, or no time: say so, with a valid bound
            budget.check()
            return certify(prepared, first_actions(prepared), budget)
        choice, rate = _choices(prepared, program, solved.values().__getitem__)
        return certify(prepared, choice, budget, rate)


def formulate(prepared: Prepared) -> Any:
    """Return the program as a Pyomo model: tokens of a measure x(s, a) whose iterations take a
    given time in all.

    The measure counts in parts of the stationary distribution. States that are left for ever have
    none.
    """
    import pyomo.environ as pyo

    tokens, seconds = prepared.tables
    states = [int(s) for s in prepared.recurrent]
    typical = float(
        seconds[states].min(axis=1).mean()
    )  # the measure then sums to about 1, whatever the unit of time
    program = pyo.ConcreteModel()
    program.unit, program.offset = 1.0 / typical, 0.0
    program.states = pyo.Set(initialize=states)
    program.actions = pyo.RangeSet(
        0, tokens.shape[1] - 1
    )  # every draft length at one resolution, then the next
    program.visits = pyo.Var(
        program.states, program.actions, domain=pyo.NonNegativeReals
    )  # x(s, a)
    program.visited = pyo.Var(program.states, domain=pyo.NonNegativeReals)  # y(s)

    def over(values: Floats) -> Any:
        return sum(
            float(prepared.shares[s] * values[s, a]) * program.visits[s, a]
            for s in states
            for a in program.actions
        )

    program.rate = pyo.Objective(expr=over(tokens), sense=pyo.maximize)
    # Iterations take the time that there is.
    program.second = pyo.Constraint(expr=over(seconds / typical) == 1.0)
    program.total = pyo.Constraint(
        program.states, rule=lambda p, s: p.visited[s] == sum(p.visits[s, a] for a in p.actions)
    )
    # A state is left as often as it is entered: in parts all are visited alike.
    program.flow = pyo.Constraint(
        states[1:], rule=lambda p, s: p.visited[s] == p.visited[states[0]]
    )
    return program


def _choices(prepared: Prepared, program: Any, value: Value) -> tuple[Ints, float]:
    """Return the actions, those that are best at the rate where a state is hardly visited, and the
    rate.
    """
    tokens, seconds = prepared.tables
    measure = np.zeros(tokens.shape)
    for s in program.states:
        measure[s] = [prepared.shares[s] * value(program.visits[s, a]) for a in program.actions]
    rate = max(0.0, float((tokens * measure).sum() / (seconds * measure).sum()))
    choice, visits = np.argmax(measure, axis=1), measure.sum(axis=1)
    rare = visits <= VISITED * visits.sum()
    choice[rare] = np.argmax(tokens[rare] - rate * seconds[rare], axis=1)
    return choice, rate


def read(problem: DraftControlProblem, program: Any, value: Value) -> DraftControlPlan:
    """Return the plan of a program's solution."""
    prepared = prepare(problem)
    return prepared.plan(_choices(prepared, program, value)[0])


def state(problem: DraftControlProblem) -> Any:
    """Return the program in parts of the stationary distribution: rare transitions are below
    solvers' tolerances.

    Raises
    ------
    Unsupported
        If the program is too large.
    """
    lengths, states = problem.draft_lengths, len(problem.states)
    actions = states * len(problem.resolutions) * (lengths[1] - lengths[0] + 1)
    check_size(2 * states, states + actions, 2 * actions + 3 * states - 2)
    return formulate(prepare(problem))


FORMULATION = Formulation(state, read)
