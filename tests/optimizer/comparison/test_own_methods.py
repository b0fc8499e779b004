"""Methods of one's own in comparisons: what was given runs, under its own name, and again after an
edit.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import pytest

from specopt import InvalidInput, compare, generate
from specopt.comparison.compare import cells_of
from specopt.comparison.sources import sources_of
from specopt.comparison.store import Store
from specopt.models.verification_batch.problem import VerificationBatchProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome
from specopt.solvers.verification_batch.baselines import FirstComeFirstServed

PROBLEM = generate("verification-batch/mixed", requests=5)


def broken_method() -> Method:
    """Return a method that raises, under the name of one that does not."""

    @dataclass(frozen=True)
    class Broken(FirstComeFirstServed):
        def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
            raise ArithmeticError("mine, and broken")

    return Broken()


def test_what_was_given_runs(tmp_path: Path) -> None:
    """Tests that a subclass that raises is a failure with its message, though a method of its name
    would succeed.
    """
    (record,) = compare([broken_method()], [PROBLEM], jobs=1, folder=tmp_path)
    assert (record.method, record.status) == ("fcfs", "failed")
    assert record.error == "ArithmeticError: mine, and broken"
    assert record.host and record.wall_seconds > 0.0
    assert list(Store(tmp_path).records().values()) == [record]


def test_a_shared_name_is_refused() -> None:
    """Tests that two methods of one name and kind are refused by their import paths, and a method
    twice is not.
    """
    with pytest.raises(
        InvalidInput, match=r"FirstComeFirstServed and .*Broken share the name 'fcfs'"
    ):
        compare(["fcfs", broken_method()], [PROBLEM])
    twice: list[str | Method] = ["fcfs", FirstComeFirstServed(), FirstComeFirstServed(skip=True)]
    assert len(cells_of(twice, [PROBLEM], time_limit=1.0, gap=0.0, seeds=(0,))) == 2


def test_what_cannot_travel_is_refused() -> None:
    """Tests that a method that holds what no other process can have is named before anything
    runs.
    """
    lock = (sys.stdout for _ in range(1))

    @dataclass(frozen=True)
    class Holding(FirstComeFirstServed):
        name: ClassVar[str] = "holding"

        def run(self, problem: VerificationBatchProblem, budget: Budget) -> Outcome:
            return next(lock)  # type: ignore[return-value]

    with pytest.raises(InvalidInput, match="holding cannot be sent to a worker process"):
        compare([Holding()], [PROBLEM])


METHOD = """
from dataclasses import dataclass
from typing import ClassVar
from specopt.solvers.verification_batch.baselines import FirstComeFirstServed
from own_helper import order

@dataclass(frozen=True)
class First(FirstComeFirstServed):
    name: ClassVar[str] = "first"

    def run(self, problem, budget):
        assert order() == 1
        return super().run(problem, budget)
"""


def test_an_edit_of_a_module_of_its_package_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a method's digest follows a module that it takes from its package, and no module
    beside that.
    """
    package = tmp_path / "own_package"
    package.mkdir()
    texts = {
        "first": METHOD.replace("from own_helper import order", "from own_package import helper")
    }
    for name in ("__init__", "helper", "other", "first"):
        (package / f"{name}.py").write_text(texts.get(name, ""))
    monkeypatch.syspath_prepend(tmp_path)
    first = import_module("own_package.first").First
    before = sources_of(first)
    (package / "other.py").write_text("ORDER = 2\n")
    assert sources_of(first) == before
    (package / "helper.py").write_text("ORDER = 2\n")
    assert {name for name, digest in sources_of(first).items() if digest != before[name]} == {
        "method"
    }


CELL = """
import sys
from dataclasses import dataclass
from typing import ClassVar
from specopt import compare, generate
from specopt.solvers.verification_batch.baselines import FirstComeFirstServed

def order():
    return ORDER

@dataclass(frozen=True)
class First(FirstComeFirstServed):
    name: ClassVar[str] = "first"

    def run(self, problem, budget):
        assert order() == 1
        return super().run(problem, budget)

problem = generate("verification-batch/mixed", requests=5)
(found,) = compare([First()], [problem], jobs=1, folder=sys.argv[1])
print(found.status, found.key, found.started)
"""


@pytest.mark.nightly
def test_a_class_without_a_file_travels(tmp_path: Path) -> None:
    """Tests that a class of a notebook runs in a worker, is not run again, and is after an edit of
    what it calls.
    """

    def run(order: str) -> list[str]:
        command = [sys.executable, "-P", "-c", CELL.replace("ORDER", order), str(tmp_path / "out")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    first, again, edited = run("1"), run("1"), run("2")
    assert first == again
    assert (first[0], edited[0]) == ("feasible", "failed")
    assert first[1] != edited[1]
