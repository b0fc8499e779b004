"""The first hour of a user: a whole program, the front door's names, functions as methods, many
files at once, missing extras.
"""

from __future__ import annotations

import doctest
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import user_program
from helpers.records import record

import specopt
from specopt.commands.cli import run
from specopt.comparison.table import Comparison
from specopt.instances.verification_batch.workload import TABLE_12
from specopt.kinds import KINDS
from specopt.online import AsyncScheduler, NotVerified, VerificationScheduler


def test_user_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that the program runs, and that its result prints objective with unit, bound, gap and
    plan.
    """
    user_program.main(tmp_path)
    shown = capsys.readouterr().out
    for text in (
        "objective       10.9018  weighted tokens per round",
        "bound           10.9018  every plan has an objective of at most this",
        "gap             0 %",
        "draft tokens    8 3 1",
    ):
        assert text in shown
    assert (tmp_path / "stopping.svg").read_text().startswith("<svg")


BUILT = {kind.problem for kind in KINDS} | {
    kind.simulator.world for kind in KINDS if kind.simulator
}
"""Classes that users build from own numbers: problems, and the workloads of simulators."""


@pytest.mark.parametrize("name", sorted(one.__name__ for one in BUILT))
def test_example_of_own_numbers(name: str) -> None:
    """Tests that every class shows how to build a problem or a workload from own numbers."""
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(specopt, name))
    runner = doctest.DocTestRunner(verbose=False)
    assert {"solve", "simulate"} & {one.source.partition("(")[0] for one in example.examples}
    assert runner.run(example, out=io.StringIO().write) == (0, len(example.examples))


def test_import_loads_no_numpy() -> None:
    """Tests that importing specopt loads neither NumPy nor any problem: names load on access."""
    code = (
        "import sys, specopt; assert not {'numpy', 'numba'} & set(sys.modules);"
        "specopt.online, specopt.testing, specopt.Method, specopt.InternalError"
    )
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_every_name_loads() -> None:
    """Tests that all names of the front door exist, and that a wrong one is answered with the
    closest.
    """
    assert all(hasattr(specopt, name) for name in dir(specopt))
    with pytest.raises(AttributeError, match="did you mean 'solve'"):
        specopt.solv  # type: ignore[attr-defined]  # noqa: B018


def test_numpy_counts_as_json() -> None:
    """Tests that arrays and NumPy's numbers are accepted in files' data and in fields."""
    plan = user_program.plan_of_arrays()
    data = plan.to_dict() | {"batches": [np.array([0, 1]), np.array([2, 3])]}
    assert specopt.ServingLatencyPlan.from_dict(data) == plan
    stopping = specopt.DraftStoppingPlan(start=0, next=[np.array([1, 1]), [np.int64(-1), -1]])
    assert stopping.next.rows.tolist() == [[1, 1], [-1, -1]]


def test_function_that_answers_wrongly() -> None:
    """Tests that a function may find no plan, and that an infeasible one is its error, not ours."""
    problem = user_program.problem_of_own_numbers()
    assert specopt.solve(problem, lambda _: None).status is specopt.Status.NONE
    with pytest.raises(specopt.InvalidInput, match="the plan violates"):
        specopt.solve(problem, lambda _: {"draft_tokens": [13, 0, 0]})


def test_infinite_distances_rank_last() -> None:
    """Tests that problems on which a method is infinitely bad count in paired tests."""
    records = [record("good", f"a/{place}", 1.0) for place in range(6)]
    records += [record("bad", f"a/{place}", math.inf if place else 1.5) for place in range(6)]
    (test,) = specopt.paired_tests(Comparison(records, known={}))
    assert (test.first, test.problems) == ("bad", 6)
    assert (test.first_infinite, test.second_infinite) == (5, 0)
    assert test.mean_difference == pytest.approx(0.5 / 1.5) and test.p_value == 2 / 64


def solve_files(folder: Path, *names: str) -> tuple[int, list[str]]:
    """Return the exit code and the names of the results of solving files in one process."""
    out = folder / "results"
    code = run(["solve", *(str(folder / name) for name in names), "-o", str(out), "-q"])
    return code, sorted(path.name for path in out.glob("*"))


def test_many_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that several files are solved in one process, and that the worst exit code is
    returned.
    """
    problem = user_program.problem_of_own_numbers()
    for name in ("one.json", "two.json"):
        specopt.save(problem, tmp_path / name)
    (tmp_path / "broken.json").write_text("{")
    assert solve_files(tmp_path, "one.json", "two.json") == (0, ["one.json", "two.json"])
    code, names = solve_files(tmp_path, "one.json", "broken.json", "two.json")
    assert (code, names) == (2, ["one.json", "two.json"])
    assert "broken.json: expected a JSON document" in capsys.readouterr().err
    (tmp_path / "a").mkdir()
    specopt.save(problem, tmp_path / "a/one.json")
    assert solve_files(tmp_path, "one.json", "a/one.json")[0] == 2
    assert "rename one of the files" in capsys.readouterr().err


def test_problem_from_stdin(tmp_path: Path) -> None:
    """Tests that `-` reads a problem from standard input."""
    text = json.dumps(user_program.problem_of_own_numbers().to_dict())
    command = [sys.executable, "-P", "-m", "specopt", "solve", "-", "--json", "-q"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["status"] == "optimal" and done.stderr == ""


def test_full_disk_is_not_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a full disk has an exit code of its own."""
    specopt.save(user_program.problem_of_own_numbers(), tmp_path / "one.json")
    assert run(["solve", str(tmp_path / "one.json"), "-o", "/dev/full"]) == 74
    assert "No space left" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "extra"), [("pyarrow", "tables"), ("vl_convert", "plot")])
def test_missing_extra(
    module: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that tables and pictures name the extra that they need, and that a comparison is
    written without them.
    """
    monkeypatch.setitem(sys.modules, module, None)
    problem = user_program.problem_of_own_numbers()
    comparison = Comparison([record("good", "a/1", 1.0)], known={})
    with pytest.raises(specopt.MissingDependency, match=extra):
        comparison.to_arrow() if module == "pyarrow" else comparison.plot().save(tmp_path / "x.svg")
    specopt.save(problem, tmp_path / "one.json")
    folder = tmp_path / "study"
    command = ["compare", str(tmp_path / "one.json"), "--method", "greedy", "-o", str(folder)]
    assert run(command) == 0
    assert len(list(folder.glob("comparison.parquet")) + list(folder.glob("profiles.png"))) == 1


def test_front_refuses_a_picture_before_it_solves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that `front -o x.svg` without the extra ends before any work."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setattr("specopt.front", None)
    specopt.save(user_program.problem_of_own_numbers(), tmp_path / "one.json")
    command = ["front", str(tmp_path / "one.json"), "--field", "budget_tokens"]
    assert run([*command, "--values", "3,4", "-o", str(tmp_path / "x.svg")]) == 2
    assert "specopt[plot]" in capsys.readouterr().err


def test_async_scheduler_says_what_is_wrong() -> None:
    """Tests that a verifier that is not async is refused, and a scheduler that was never opened."""
    scheduler = VerificationScheduler(TABLE_12)
    with pytest.raises(specopt.InvalidInput, match="expected an async function"):
        AsyncScheduler(scheduler, lambda drafts: drafts)  # type: ignore[arg-type, return-value]
    serving: Any = AsyncScheduler(scheduler, user_program.verify)
    with pytest.raises(NotVerified, match="open the scheduler first"):
        serving.submit("a", [1]).send(None)
