"""Public formulations: any solver may solve them, the plan is read back, the judge prices it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import specopt
from specopt import (
    InvalidInput,
    Problem,
    PromptChunkingProblem,
    ServingLatencyPlan,
    Unsupported,
    formulation,
    generate,
    plan_of,
    solve,
)
from specopt.commands.cli import run
from specopt.kinds import KINDS
from specopt.testing.strategies.prompt_chunking import problems as prompt_chunkings

CASES: dict[str, dict[str, Any]] = {
    "serving-latency/paper-1": {"tasks": 3, "max_output": 16},
    "verification-batch/mixed": {"requests": 10},
    "prompt-chunking/random": {"prompt_tokens": 9},
    "draft-allocation/uniform": {"clients": 4},
    "draft-control/random": {"states": 3, "max_draft": 3},
    "draft-stopping/random": {"max_draft": 4, "bins": 3},
    "fair-goodput/paper-5": {"clients": 3, "budget": 6},
    "placement/one-class": {"number_of_clients": 3, "max_draft": 2},
}


def solved(model: Any) -> Any:
    """Solve a program in place, by Pyomo's HiGHS or CVXPY's own choice; return its objective in its own unit."""
    if hasattr(model, "var_dict"):
        model.solve()
        return model.value
    import pyomo.environ as pyo
    from pyomo.contrib.solver.solvers.highs import Highs

    from specopt.solvers.highs import silent_highs

    with silent_highs():
        Highs().solve(model)
    return pyo.value(next(model.component_data_objects(pyo.Objective)))


def test_every_kind_has_one() -> None:
    """Tests that every kind of problem has a formulation, and a case here."""
    assert {name.partition("/")[0] for name in CASES} == {kind.name for kind in KINDS if kind.formulation is not None}
    assert len(CASES) == len(KINDS)


@pytest.mark.parametrize("family", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_the_program_is_the_problem(family: str, seed: int) -> None:
    """Tests that the optimum of a program is that of the problem, and that the plan read from it is worth as much."""
    problem = generate(family, seed=seed, **CASES[family])
    best = solve(problem, "brute-force" if family.startswith("serving") else None)
    options = {"length": best.plan.speculation_length} if isinstance(best.plan, ServingLatencyPlan) else {}
    model = formulation(problem, **options)
    value = solved(model)
    plan = plan_of(problem, model)
    assert problem.violations(plan) == []
    assert problem.evaluate(plan).objective == pytest.approx(best.objective, rel=1e-6)
    if problem.kind != "fair-goodput":
        assert model.unit * value + model.offset == pytest.approx(best.objective, rel=1e-6)


@settings(max_examples=40)
@given(prompt_chunkings())
def test_chunks_by_program_and_by_enumeration(problem: PromptChunkingProblem) -> None:
    """Tests that `milp` proves what enumeration finds, whatever the problem has."""
    found, best = solve(problem, "milp"), solve(problem, "brute-force")
    assert found.objective is not None and best.objective is not None and found.bound is not None
    assert found.objective == pytest.approx(best.objective, rel=1e-6)
    assert found.bound <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize("family", CASES)
def test_the_documentation_has_every_name(family: str) -> None:
    """Tests that each set, variable and row of a program stands in the section of its kind."""
    text = (Path(__file__).parents[2] / "docs" / "formulations.md").read_text()
    problem = generate(family, seed=1, **CASES[family])
    heading = problem.kind.replace("-", " ").capitalize()
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    model = formulation(problem)
    if hasattr(model, "var_dict"):
        names = list(model.var_dict)
    else:
        import pyomo.environ as pyo

        parts = (pyo.Set, pyo.RangeSet, pyo.Var, pyo.Constraint, pyo.Objective)
        names = [part.local_name for kind in parts for part in model.component_objects(kind)]
    named = {re.split(r"[\[ ]", name)[0] for name in re.findall(r"`([^`]+)`", section)}
    hidden = {name for name in names if name.endswith(("_index", "_domain")) or "_index_" in name or name[0] == "_"}
    assert set(names) - hidden - named == set()


@pytest.mark.parametrize("form", ["lp", "mps"])
def test_written_programs_are_read_by_others(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the file of a program has the optimum, its names, and that all or nothing is written."""
    import highspy

    from specopt.solvers.highs import Highs

    problem = generate("verification-batch/mixed", requests=10, seed=1)
    file, target = tmp_path / "problem.json", tmp_path / f"program.{form}"
    specopt.save(problem, file)
    assert run(["export", str(file), "--as", form, "-o", str(target)]) == 0
    assert "takes" in target.read_text()
    model = Highs()
    assert model.readModel(str(target)) == highspy.HighsStatus.kOk
    model.run()
    value = abs(model.getInfo().objective_function_value) * formulation(problem).unit
    assert value == pytest.approx(solve(problem).objective, rel=1e-6)
    assert run(["export", str(file), "--as", "txt", "-o", str(tmp_path / "x")]) == 2
    assert not (tmp_path / "x").exists()
    assert "expected one of lp, mps" in capsys.readouterr().err


def test_what_has_no_solution_is_one_message() -> None:
    """Tests that programs without a solution, or of something else, and wrong options are named."""
    problem = generate("draft-allocation/uniform", clients=3, seed=1)
    with pytest.raises(InvalidInput, match="expected a solved program"):
        plan_of(problem, formulation(problem))
    with pytest.raises(InvalidInput, match="expected a formulation of this problem"):
        plan_of(problem, 3)
    with pytest.raises(InvalidInput, match=r"length: expected an option of the formulation \(it has none\)"):
        formulation(problem, length=3)
    served = generate("serving-latency/paper-1", tasks=3, seed=1)
    with pytest.raises(InvalidInput, match="length: expected 1 to"):
        formulation(served, length=99)
    timed = generate("fair-goodput/per-second", clients=3, budget=5, seed=1)
    with pytest.raises(Unsupported, match="rates per second"):
        formulation(timed)
    with pytest.raises(InvalidInput, match=r"solver: expected one of .*scip_direct"):
        solve(problem, "milp", solver="nobody")


def test_another_solver_proves_the_same() -> None:
    """Tests that SCIP, where it is installed, solves every program that `milp` states."""
    pytest.importorskip("pyscipopt", reason="needs pip install pyscipopt")
    for family in ("draft-allocation/uniform", "verification-batch/mixed", "prompt-chunking/random"):
        problem: Problem = generate(family, seed=1, **CASES[family])
        found = solve(problem, "milp", solver="scip_direct")
        assert found.objective == pytest.approx(solve(problem).objective, rel=1e-6) and found.gap == 0.0
