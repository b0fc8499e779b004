"""Variants: subclasses of the problems of a kind, with a judge of their own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import cloudpickle
import pytest

from specopt import (
    InvalidInput,
    Problem,
    Progress,
    Status,
    Unsupported,
    compare,
    formulation,
    generate,
    load,
    save,
    simulate,
    solve,
    verify,
)
from specopt.api.solve import methods
from specopt.models.errors import Infeasible
from specopt.models.problem import Evaluation, overridden, problem_type
from specopt.models.serving_latency import ServingLatencyPlan, ServingLatencyProblem
from specopt.solvers.budget import Budget
from specopt.solvers.method import Method, Outcome
from specopt.solvers.serving_latency import AutoServing

BASE = generate("serving-latency/paper-1", tasks=5, seed=1)
EXTRA = 20.0
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests


@dataclass(frozen=True, kw_only=True, eq=False)
class Slower(ServingLatencyProblem):
    """Every task takes longer."""

    def evaluate(self, plan: ServingLatencyPlan) -> Evaluation:
        """Return what the base says, and the extra."""
        found = super().evaluate(plan)
        return Evaluation(found.objective + EXTRA, found.terms, found.size + EXTRA)


@dataclass(frozen=True, kw_only=True, eq=False)
class Renamed(ServingLatencyProblem):
    """The base, with a field and a function of its own."""

    note: str = "mine"

    def tasks_in_all(self) -> int:
        """Count them."""
        return len(self.input_tokens)


@dataclass(frozen=True)
class Own(AutoServing):
    """A method for the variant."""

    name: ClassVar[str] = "own"
    solves: ClassVar[type[ServingLatencyProblem]] = Slower

    def run(self, problem: Any, budget: Budget) -> Outcome:
        """Solve the base, and add the extra to its bound."""
        base = solve(ServingLatencyProblem.from_dict(problem.to_dict()))
        assert base.bound is not None
        return Outcome(plan=base.plan, bound=base.bound + EXTRA)


def of(variant: type[Problem]) -> Problem:
    """Return the base's data as a problem of a variant."""
    return variant.from_dict(BASE.to_dict())


def slower_by(seconds: float) -> type[Problem]:
    """Return a variant that no module holds."""

    @dataclass(frozen=True, kw_only=True, eq=False)
    class Local(ServingLatencyProblem):
        def evaluate(self, plan: ServingLatencyPlan) -> Evaluation:
            return Evaluation(super().evaluate(plan).objective + seconds)

    return Local


@pytest.mark.parametrize("variant", [Slower, slower_by(EXTRA)], ids=["module", "local"])
def test_solve_and_compare_agree(variant: type[Problem]) -> None:
    """Tests that both judge by the class that was given, and that neither believes a proof for the base."""
    problem, base = of(variant), solve(BASE)
    assert base.status is Status.OPTIMAL and base.objective is not None
    with pytest.warns(
        UserWarning, match=f"{variant.__name__} overrides evaluate of .*: auto proves nothing of it"
    ) as said:
        result = solve(problem)
    assert len(said) == 1 and said[0].filename == __file__
    assert result.stats["variant"] == str(said[0].message)
    assert (result.status, result.bound, result.gap) == (Status.FEASIBLE, None, None)
    assert result.stats["bound_by"] is None
    assert result.objective == pytest.approx(base.objective + EXTRA, abs=1e-9)
    ours, theirs = compare(["auto"], {"a": BASE, "b": problem}, jobs=1)
    assert (ours.objective, ours.status) == (base.objective, "optimal")
    assert (theirs.objective, theirs.status, theirs.bound) == (result.objective, "feasible", None), theirs.error
    assert theirs.problem_sha256 == result.problem_sha256 == problem.sha256
    assert result.problem is problem and verify(problem, result).feasible
    with pytest.raises(InvalidInput, match="belongs to another problem"):
        verify(BASE, result)


def test_identities_differ() -> None:
    """Tests that a variant is another problem than its base and than a variant with other code or constants."""
    problems = [BASE, of(Slower), of(Renamed), of(slower_by(20.0)), of(slower_by(21.0))]
    assert len({problem.sha256 for problem in problems}) == len(problems)
    assert of(slower_by(20.0)).sha256 == problems[3].sha256
    assert all(problem != BASE for problem in problems[1:])
    assert of(Slower) == of(Slower) and not BASE.is_variant()
    assert problem_type(BASE.kind) is ServingLatencyProblem


def test_identity_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Tests that sets and what functions inside functions call are part of a variant's code, in one order."""
    script = """
import sys
from dataclasses import dataclass
from specopt import generate
from specopt.models.problem import Evaluation
from specopt.models.serving_latency import ServingLatencyProblem

def factor(i):
    return FACTOR * i

class Mine(ServingLatencyProblem):
    def evaluate(self, plan):
        return Evaluation(sum(factor(i) for i in range(3)) if self.name in {"a", "b", "c", "d"} else 0.0)

FACTOR = float(sys.argv[1])
print(Mine.from_dict(generate("serving-latency/paper-1", tasks=3).to_dict()).sha256)
"""
    file = tmp_path / "mine.py"
    file.write_text(script)

    def digest(factor: str, luck: str) -> str:
        return subprocess.check_output([sys.executable, str(file), factor], env={"PYTHONHASHSEED": luck}, text=True)

    assert digest("1", "1") == digest("1", "2") != digest("2", "1")


def test_a_method_of_the_variant_proves() -> None:
    """Tests that a method whose `solves` is the variant's class is believed, here and in a worker."""
    result = solve(of(Slower), Own())
    assert result.status is Status.OPTIMAL and "variant" not in result.stats
    (record,) = compare([Own()], [of(Slower)], jobs=1)
    assert (record.status, record.objective) == ("optimal", result.objective), record.error
    with pytest.raises(Unsupported, match="it solves Slower"):
        solve(BASE, Own())


def test_what_changes_no_judge_is_believed() -> None:
    """Tests that a variant with fields and functions of its own, and the base's judge, is solved as its base is."""
    result = solve(of(Renamed))
    assert (result.status, result.objective) == (Status.OPTIMAL, solve(BASE).objective)
    assert not overridden(Renamed, ServingLatencyProblem)
    (record,) = compare(["auto"], [of(Renamed)], jobs=1)
    assert record.status == "optimal", record.error


@dataclass(frozen=True, kw_only=True, eq=False)
class Closed(ServingLatencyProblem):
    """Nothing is allowed."""

    def violations(self, plan: ServingLatencyPlan) -> list[str]:
        """Say so."""
        return ["closed today"]


@dataclass(frozen=True)
class Refusing(AutoServing):
    """A method that says that there is no plan, perhaps after it has found one."""

    name: ClassVar[str] = "refusing"
    late: bool = False

    def run(self, problem: Any, budget: Budget) -> Outcome:
        """Say so."""
        if self.late:
            super().run(problem, budget)
        raise Infeasible("nothing fits")


def test_constraints_of_a_variant() -> None:
    """Tests that a plan that only the variant forbids is no internal error, and a proof for the base none."""
    with pytest.warns(UserWarning, match="Closed overrides violations of"):
        closed = solve(of(Closed))
    assert (closed.status, closed.plan, closed.objective) == (Status.NONE, None, None)
    assert closed.explanation is not None and closed.explanation.endswith("its plan violates: closed today")
    with pytest.warns(UserWarning, match="Closed overrides violations of"):
        none = solve(of(Closed), Refusing())
    assert none.status is Status.NONE and none.explanation is not None
    assert none.explanation.endswith("ServingLatencyProblem: refusing proves nothing of it; nothing fits")
    with pytest.warns(UserWarning, match="Slower overrides evaluate of"):
        late = solve(of(Slower), Refusing(late=True))
    assert (late.status, late.explanation, "refuted" in late.stats) == (Status.FEASIBLE, None, False)
    assert solve(BASE, Refusing()).status is Status.INFEASIBLE


def test_progress_has_no_bound() -> None:
    """Tests that a callback is not told of the bound either."""
    seen: list[Progress] = []
    with pytest.warns(UserWarning):
        solve(of(Slower), callback=seen.append)
    assert seen and all(progress.bound is None and progress.gap is None for progress in seen)
    solve(BASE, callback=seen.append)
    assert seen[-1].bound is not None


def test_files_hold_no_variant(tmp_path: Path) -> None:
    """Tests that saving a variant is refused, and that the data of one may be saved and loaded as the base."""
    with pytest.raises(InvalidInput, match="expected one of ServingLatencyProblem itself, got Slower"):
        save(of(Slower), tmp_path / "slower.json")
    assert not (tmp_path / "slower.json").exists()
    save(ServingLatencyProblem.from_dict(of(Slower).to_dict()), tmp_path / "base.json")
    assert load(tmp_path / "base.json") == BASE


def test_what_would_speak_of_the_base_is_refused() -> None:
    """Tests that programs and simulators, which know the base alone, refuse a variant with a judge of its own."""
    with pytest.raises(Unsupported, match="formulation: Slower overrides evaluate of ServingLatencyProblem"):
        formulation(of(Slower))
    with pytest.raises(Unsupported, match="simulate: Slower overrides evaluate of ServingLatencyProblem"):
        simulate(of(Slower), solve(BASE).plan)


def test_what_cannot_travel_is_refused() -> None:
    """Tests that a class that holds what no process can have, or that rates gaps by itself, is named at once."""
    lock = (sys.stdout for _ in range(1))

    class Holding(ServingLatencyProblem):
        def evaluate(self, plan: ServingLatencyPlan) -> Evaluation:
            return next(lock)  # type: ignore[return-value]

    class Upwards(ServingLatencyProblem):
        sense = "maximize"

    with pytest.raises(InvalidInput, match="problems: Holding cannot be sent to a worker process"):
        compare(["auto"], [of(Holding)])
    with pytest.raises(InvalidInput, match="problems: Upwards overrides sense, by which tables rate serving-latency"):
        compare(["auto"], [of(Upwards)])


def test_methods_of_a_variant_are_not_listed_for_its_base(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a plug-in for a variant is listed for its problems alone."""
    plugged: tuple[type[Method], ...] = (Own,)
    monkeypatch.setattr("specopt.api.solve.plugged_methods", lambda kind: plugged)
    assert Own in methods(of(Slower)) and Own not in methods(BASE)
