"""Public formulations: any solver may solve them, the plan is read back, the judge prices it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import CommandLine
from helpers.units import in_other_seconds
from hypothesis import given, settings
from hypothesis import strategies as st

import specopt
from specopt import (
    FairGoodputProblem,
    InvalidInput,
    Problem,
    PromptChunkingProblem,
    ServingLatencyPlan,
    Unsupported,
    VerificationBatchProblem,
    formulation,
    generate,
    load,
    plan_of,
    solve,
)
from specopt.api.formulation import write_formulation
from specopt.kinds import KINDS
from specopt.kinds.draft_allocation.strategies import problems as draft_allocations
from specopt.kinds.draft_control.strategies import problems as draft_controls
from specopt.kinds.draft_stopping.strategies import problems as draft_stoppings
from specopt.kinds.fair_goodput.strategies import problems as fair_goodputs
from specopt.kinds.prompt_chunking.strategies import problems as prompt_chunkings
from specopt.kinds.verification_batch.strategies import problems as verification_batches

EDGES = Path(__file__).parents[1] / "data" / "edges"

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
    """Solve a program in place, by Pyomo's HiGHS or CVXPY's own choice; return its objective in its
    own unit.
    """
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
    """Tests that every kind of problem that has a formulation has a case here, and one alone."""
    assert sorted(name.partition("/")[0] for name in CASES) == sorted(
        kind.name for kind in KINDS if kind.formulation is not None
    )


@pytest.mark.parametrize("family", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_the_program_is_the_problem(family: str, seed: int) -> None:
    """Tests that the optimum of a program is that of the problem, and that the plan read from it is
    worth as much.
    """
    problem = generate(family, seed=seed, **CASES[family])
    best = solve(problem, "brute-force" if family.startswith("serving") else None)
    options = (
        {"length": best.plan.speculation_length}
        if isinstance(best.plan, ServingLatencyPlan)
        else {}
    )
    model = formulation(problem, **options)
    value = solved(model)
    plan = plan_of(problem, model)
    assert problem.violations(plan) == []
    assert problem.evaluate(plan).objective == pytest.approx(best.objective, rel=1e-6)
    if problem.kind != "fair-goodput":
        assert model.unit * value + model.offset == pytest.approx(best.objective, rel=1e-6)


def check(problem: Problem) -> None:
    """Solve a problem by its program, and compare the plan with the default's."""
    model = formulation(problem)
    solved(model)
    plan = plan_of(problem, model)
    best = solve(problem).objective
    assert best is not None
    assert problem.violations(plan) == []
    assert problem.gap(best, problem.evaluate(plan).objective, size=1.0) <= 2e-6


@settings(max_examples=30)
@given(
    st.one_of(verification_batches(), draft_stoppings(), draft_controls(), draft_allocations()),
    st.sampled_from([1e-9, 1.0, 1e9]),
)
def test_random_problems_in_any_unit(problem: Problem, factor: float) -> None:
    """Tests that the program of a random problem has its optimum, also in seconds of another
    size.
    """
    check(in_other_seconds(problem, factor))


@pytest.mark.parametrize("fairness", [0.0, 0.5, 0.9, 1.0, 1.1, 2.0, 12.0])
@settings(max_examples=4)
@given(problem=fair_goodputs(per=("round",)))
def test_random_fairness(fairness: float, problem: FairGoodputProblem) -> None:
    """Tests that the program of fair goodput has its optimum, steep or flat."""
    check(dataclasses.replace(problem, fairness=fairness))


@pytest.mark.parametrize("fairness", [1.0 - 1e-12, 0.92, 1.0 + 2.3e-16, 1.08])
def test_fairness_next_to_1_is_refused(fairness: float) -> None:
    """Tests that a utility that hardly changes with the rates is refused with a sentence that says
    what to do.
    """
    problem: Any = generate("fair-goodput/paper-5", clients=3, budget=6, seed=1)
    with pytest.raises(
        Unsupported, match=r"formulation: at fairness .* use 1, or a fairness that differs"
    ):
        formulation(dataclasses.replace(problem, fairness=fairness))


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_sticky_chains_keep_their_optimum(factor: float) -> None:
    """Tests that transitions rarer than a solver's tolerances do not change the plan of the
    program.
    """
    problem = load(EDGES / "draft-control-sticky.json")
    assert isinstance(problem, Problem)
    check(in_other_seconds(problem, factor))


@pytest.mark.parametrize("form", ["lp", "mps"])
def test_what_takes_no_memory_has_a_program(form: str, cli: CommandLine) -> None:
    """Tests that requests without memory are stated, solved and written, and that Pyomo prints
    nothing.
    """
    file = EDGES / "verification-formulation-no-memory.json"
    problem = load(file, VerificationBatchProblem)
    check(problem)
    assert {solve(problem, method.name).objective for method in specopt.methods(problem)} == {3.0}
    printed = cli(f"export {file} --as {form} -o program")
    assert printed.out == "" and len(printed.err.splitlines()) == 2
    assert printed.err.startswith("building and writing the linear program ...\n")


def test_what_nothing_can_be_chosen_of_has_a_program(tmp_path: Path) -> None:
    """Tests that a problem of which no request can be met is stated, solved and written."""
    problem: Any = generate("verification-batch/warm", requests=3, seed=1)
    problem = dataclasses.replace(problem, expected_tokens=[0.0, 0.0, 0.0])
    check(problem)
    write_formulation(problem, tmp_path / "program.lp", "lp")


@pytest.mark.parametrize(
    "problem",
    [
        "serving-latency/paper-1 --param tasks=40",
        "verification-batch/correlated --param requests=1000",
        "prompt-chunking/paper-4 --param prompt_tokens=900",
        "draft-allocation/uniform --param clients=100 --param budget=10000",
        "draft-control/random --set draft_lengths=[0,9999]",
    ],
)
def test_programs_that_are_too_large_are_not_begun(problem: str, cli: CommandLine) -> None:
    """Tests that the rows and columns of a large program are named, and that nothing of it is
    stated or written.
    """
    cli(f"generate {problem} --seed 1 -o problem.json")
    said = cli("export problem.json --as lp -o program.lp", 2).err
    assert re.search(r"would have [\d,]+ rows, [\d,]+ columns and [\d,]+ entries", said)
    assert not Path("program.lp").exists()


def size_of(model: Any) -> tuple[int, int, int]:
    """Return the rows, columns and entries of a program."""
    import pyomo.environ as pyo
    from pyomo.core.expr.visitor import identify_variables

    rows = list(model.component_data_objects(pyo.Constraint))
    columns = list(model.component_data_objects(pyo.Var))
    return len(rows), len(columns), sum(len(list(identify_variables(row.body))) for row in rows)


@pytest.mark.parametrize("mechanism", ["pipelined", "sequential"])
def test_the_size_of_a_program_is_that_which_is_stated(mechanism: str) -> None:
    """Tests that rows and columns are counted right before a program of serving latency is
    stated.
    """
    problem: Any = generate("serving-latency/paper-1", tasks=3, max_output=8, seed=1)
    model = formulation(dataclasses.replace(problem, mechanism=mechanism), length=2)
    rows, columns, entries = model.case.program_size
    *counted, terms = size_of(model)
    assert counted == [rows, columns]
    assert 0.3 * entries <= terms <= entries


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        *[
            ("prompt-chunking/random", {"prompt_tokens": tokens, "seed": tokens})
            for tokens in (3, 5, 7)
        ],
        ("draft-allocation/uniform", {"clients": 3, "budget": 5}),
        ("draft-control/random", {}),
    ],
)
def test_the_size_that_is_compared_is_that_of_the_program(
    family: str, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that rows, columns and entries are counted exactly before a program is stated."""
    counted: list[tuple[int, int, int]] = []
    problem: Any = generate(family, **parameters)
    module = {
        "prompt-chunking": "prompt_chunking.milp",
        "draft-allocation": "draft_allocation.milp",
    }.get(problem.kind, "draft_control.linear_program")
    monkeypatch.setattr(f"specopt.solvers.{module}.check_size", lambda *size: counted.append(size))
    assert [size_of(formulation(problem))] == counted


@settings(max_examples=40)
@given(prompt_chunkings())
def test_chunks_by_program_and_by_enumeration(problem: PromptChunkingProblem) -> None:
    """Tests that `milp` proves what enumeration finds, whatever the problem has."""
    found = solve(problem, "milp")
    best = solve(problem, "brute-force")
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
    hidden = {
        name
        for name in names
        if name.endswith(("_index", "_domain")) or "_index_" in name or name[0] == "_"
    }
    assert set(names) - hidden - named == set()


@pytest.mark.parametrize("form", ["lp", "mps"])
def test_written_programs_are_read_by_others(form: str, cli: CommandLine) -> None:
    """Tests that the file of a program has the optimum, its names, and that all or nothing is
    written.
    """
    import highspy

    from specopt.solvers.highs import Highs

    problem = generate("verification-batch/mixed", requests=10, seed=1)
    specopt.save(problem, "problem.json")
    cli(f"export problem.json --as {form} -o program.{form}")
    assert "takes" in Path(f"program.{form}").read_text()
    model = Highs()
    assert model.readModel(f"program.{form}") == highspy.HighsStatus.kOk
    model.run()
    value = abs(model.getInfo().objective_function_value) * formulation(problem).unit
    assert value == pytest.approx(solve(problem).objective, rel=1e-6)
    said = cli("export problem.json --as txt -o x", 2).err
    assert "expected one of lp, mps" in said
    assert not Path("x").exists()


def test_what_has_no_solution_is_one_message() -> None:
    """Tests that programs without a solution, or of something else, and wrong options are named."""
    problem = generate("draft-allocation/uniform", clients=3, seed=1)
    with pytest.raises(InvalidInput, match="solve the program first"):
        plan_of(problem, formulation(problem))
    with pytest.raises(InvalidInput, match="expected a formulation of this problem"):
        plan_of(problem, 3)
    with pytest.raises(
        InvalidInput, match=r"length: unknown option; options of this formulation: none"
    ):
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
    for family in (
        "draft-allocation/uniform",
        "verification-batch/mixed",
        "prompt-chunking/random",
    ):
        problem: Problem = generate(family, seed=1, **CASES[family])
        found = solve(problem, "milp", solver="scip_direct")
        assert (
            found.objective == pytest.approx(solve(problem).objective, rel=1e-6)
            and found.gap == 0.0
        )
