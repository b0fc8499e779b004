"""A reference formulation of draft control: a linear program over occupation measures, written in
Pyomo and solved by HiGHS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from specopt.models.draft_control.problem import DraftControlPlan, DraftControlProblem
from specopt.models.fields import Floats, Ints
from specopt.solvers.budget import Budget
from specopt.solvers.draft_control.method import DraftControlMethod, actions, certify, first_actions
from specopt.solvers.draft_control.prepare import Prepared, prepare
from specopt.solvers.formulation import Formulation, Value, check_size
from specopt.solvers.method import Outcome
from specopt.solvers.pyomo_program import ByProgram, solve_program

ACCURACY = 1e-9

VISITED = 1e-7
"""Share of visits below which the solver's tolerances leave the action of a state undetermined."""


@dataclass(frozen=True)
class LinearProgram(ByProgram, DraftControlMethod):
    """Maximise the expected tokens over occupation measures that use a fixed total time.

    The measure of state s and action a is pi(s) x(s, a) >= 0, where pi is the stationary
    distribution. The next state does not depend on the action. Flow balance therefore requires y(s)
    = sum over a of x(s, a) to be the same in every state. The original balance equations are
    avoided because transition probabilities may be smaller than HiGHS's tolerances. The bound uses
    the rate of the solution as the price of a second, and is valid even if HiGHS is inaccurate.
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
        """Solve the linear program, then extract the policy and the rate of the solution.

        The bound is computed with this rate as the price of a second.
        """
        program = formulate(prepared)
        budget.check()
        solved = solve_program(program, budget, ACCURACY, solver=self.solver)
        if not solved.has_solution:  # numerical trouble or no time left: the bound is still valid
            budget.check()
            return certify(prepared, first_actions(prepared), budget)
        choice, rate = _choices(prepared, program, solved.values().__getitem__)
        return certify(prepared, choice, budget, rate)


def formulate(prepared: Prepared) -> Any:
    """Return the linear program as a Pyomo model.

    The program maximises the tokens of a measure x(s, a) whose iterations take a fixed total time.
    The measure is relative to the stationary distribution. Transient states have no variables.
    """
    import pyomo.environ as pyo

    tokens, seconds = prepared.tables
    states = [int(s) for s in prepared.recurrent]
    typical = float(
        seconds[states].min(axis=1).mean()
    )  # makes the measure sum to about 1 in any unit of time
    program = pyo.ConcreteModel()
    program.unit, program.offset = 1.0 / typical, 0.0
    program.states = pyo.Set(initialize=states)
    program.actions = pyo.RangeSet(
        0, tokens.shape[1] - 1
    )  # ordered by resolution, then by draft length
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
    # The iterations use exactly the available time.
    program.second = pyo.Constraint(expr=over(seconds / typical) == 1.0)
    program.total = pyo.Constraint(
        program.states, rule=lambda p, s: p.visited[s] == sum(p.visits[s, a] for a in p.actions)
    )
    # Every state is left as often as it is entered, so all relative visit counts are equal.
    program.flow = pyo.Constraint(
        states[1:], rule=lambda p, s: p.visited[s] == p.visited[states[0]]
    )
    return program


def _choices(prepared: Prepared, program: Any, value: Value) -> tuple[Ints, float]:
    """Return the action chosen in each state and the rate of the solution, in tokens per second.

    In a state that is hardly visited, the action is the best one at that rate.
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
    """Return the plan that corresponds to a solution of the program."""
    prepared = prepare(problem)
    return prepared.plan(_choices(prepared, program, value)[0])


def state(problem: DraftControlProblem) -> Any:
    """Return the linear program for a problem.

    Its variables are relative to the stationary distribution, because rare transitions fall below
    solver tolerances.

    Raises
    ------
    Unsupported
        If the program is too large.
    """
    states = len(problem.states)
    pairs = states * actions(problem)
    check_size(2 * states, states + pairs, 2 * pairs + 3 * states - 2)
    return formulate(prepare(problem))


FORMULATION = Formulation(state, read)
