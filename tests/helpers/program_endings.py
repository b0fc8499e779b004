"""A solver of Pyomo's programs that forgets its solution and ends as a test wants it to."""

from __future__ import annotations

from typing import Any

import pytest

from specopt.solvers import pyomo_program


def end_programs_as(condition: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every program end by a termination condition of Pyomo, without a solution and without a
    bound.
    """
    from pyomo.contrib.solver.common.results import SolutionStatus

    found = pyomo_program._solver("highs")

    class Forgetful:
        def solve(self, program: Any, **options: Any) -> Any:
            """Forget what was found."""
            results = found.solve(program, **options)
            results.solution_status = SolutionStatus.noSolution
            results.termination_condition = condition
            results.objective_bound = None
            return results

    monkeypatch.setattr(pyomo_program, "_solver", lambda name: Forgetful())
