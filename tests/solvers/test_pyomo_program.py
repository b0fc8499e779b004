"""Programs that HiGHS ends in its presolve, and what is added to its bounds."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.untyped import generate
from pyomo.common.config import ConfigDict

from specopt.models.result import Termination
from specopt.solvers.budget import Budget
from specopt.solvers.pyomo_program import SolvedProgram, solve_program


def test_counters_that_were_left_out() -> None:
    """Tests that counters are 0 where Pyomo leaves them out, as it does when HiGHS ends in
    presolve.
    """
    results: Any = type("Results", (), {"extra_info": ConfigDict()})
    solved = SolvedProgram(results, None, has_solution=True, termination=Termination.CONVERGED)
    assert solved.nodes == solved.count("simplex_iteration_count") == 0


@pytest.mark.parametrize(("sense", "sign"), [("minimize", 1), ("maximize", -1)])
def test_bounds_bear_the_tolerances(sense: str, sign: int) -> None:
    """Tests that a bound is beyond the optimum by what HiGHS may overlook, on its side."""
    import pyomo.environ as pyo

    program: Any = pyo.ConcreteModel()
    program.x = pyo.Var([0, 1], domain=pyo.Binary)
    program.row = pyo.Constraint(expr=program.x[0] + program.x[1] == 1)
    program.goal = pyo.Objective(expr=program.x[0] + 3 * program.x[1], sense=getattr(pyo, sense))
    solved = solve_program(program, Budget(generate("verification-batch/warm", requests=1)))
    assert solved.has_solution and solved.bound is not None
    optimum = 1.0 if sense == "minimize" else 3.0
    assert (optimum - solved.bound) * sign == pytest.approx(1.2e-6, rel=1e-3)
