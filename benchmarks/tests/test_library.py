"""The command that regenerates the instance library: it improves, and otherwise changes nothing."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import library  # type: ignore[import-not-found]  # benchmarks are no package
import msgspec
import pytest

from specopt.api.library import BestKnown, SavedInstance, load_saved, saved_instance
from specopt.kinds import KINDS

SHORT = "verification-batch/mixed/n14"
RECIPE = ("name", "size", "seed", "parameters")


def test_lines_round_trip() -> None:
    """Tests that every saved line is what the script writes of it, byte for byte."""
    for kind in KINDS:
        lines = (library.FOLDER / f"{kind.name}.jsonl").read_text().splitlines()
        assert [library.line_of(library.read(line.encode())[1]) for line in lines] == lines


def test_nothing_changes_without_need() -> None:
    """Tests that regenerating a proven instance gives the line that is saved, its date and seconds
    included.
    """
    old = saved_instance(SHORT)
    assert library.regenerate(old, old, 5.0) == old


def test_new_instances_and_new_numbers_start_afresh() -> None:
    """Tests that an unknown instance is solved, and that a changed problem does not keep a plan of
    another.
    """
    old = saved_instance(SHORT)
    recipe, nothing = library.read(
        json.dumps({name: getattr(old, name) for name in RECIPE}).encode()
    )
    assert nothing is None
    stale = replace(old, problem_sha256="0" * 64, best=replace(old.best, objective=1e9, bound=1e9))
    for before in (None, stale):
        new = library.regenerate(recipe, before, 5.0)
        assert isinstance(new, SavedInstance)
        assert new.problem_sha256 == old.problem_sha256
        assert new.best.objective == pytest.approx(old.best.objective)
        assert new.best.status == "optimal"
        assert new.best.confirmed_by


def test_a_kind_without_lines(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tests that a kind without a file has no instances, and gets no file."""
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["library.py", "fair-goodput"])
    library.main()
    assert capsys.readouterr().out.startswith("fair-goodput: 0 instances") and not list(
        tmp_path.iterdir()
    )


def known(
    objective: float, bound: float | None, method: str = "exact", date: str = "2026-01-01"
) -> BestKnown:
    """A best known value of a problem that is minimised."""
    proven = bound is not None and abs(objective - bound) < 1e-9
    return BestKnown(
        objective=objective,
        bound=bound,
        status="optimal" if proven else "feasible",
        gap=None if bound is None else abs(objective - bound) / objective,
        method=method,
        bound_method=None if bound is None else method,
        seconds=1.0,
        date=date,
    )


@pytest.mark.parametrize(
    ("old", "new", "objective", "bound", "status", "method"),
    [
        ((10.0, 8.0), (11.0, 7.0), 10.0, 8.0, "feasible", "exact"),
        ((10.0, 8.0), (9.0, 7.0), 9.0, 8.0, "feasible", "other"),
        ((10.0, 8.0), (11.0, 9.0), 10.0, 9.0, "feasible", "exact"),
        ((10.0, 8.0), (9.0, 9.0), 9.0, 9.0, "optimal", "other"),
        ((10.0, None), (10.0, 8.0), 10.0, 8.0, "feasible", "exact"),
        ((10.0, 8.0), (10.0, None), 10.0, 8.0, "feasible", "exact"),
        ((10.0, 10.0), (10.0 + 1e-12, 10.0 - 1e-12), 10.0, 10.0, "optimal", "exact"),
        ((10.0, 10.0), (9.0, 8.0), 9.0, 8.0, "feasible", "other"),
    ],
)
def test_the_better_of_two(
    old: tuple[float, float | None],
    new: tuple[float, float | None],
    objective: float,
    bound: float,
    status: str,
    method: str,
) -> None:
    """Tests that plan and bound are each kept unless the new one is better, with the right
    status.
    """
    problem = load_saved("serving-latency/paper-1/K7-68M-7B")
    best = library.better_of(problem, known(*old), known(*new, method="other", date="2026-02-02"))
    assert (best.objective, best.bound, best.status, best.method) == (
        objective,
        bound,
        status,
        method,
    )
    if (best.objective, best.bound) == old:
        assert best == known(*old)


def test_maximisation_is_the_other_way_round() -> None:
    """Tests that a larger objective and a smaller bound are better where the objective is
    maximised.
    """
    problem = load_saved(SHORT)
    best = library.better_of(problem, known(8.0, 11.0), known(9.0, 12.0))
    assert (best.objective, best.bound) == (9.0, 11.0)


def test_contradictions_stop_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that a bound below another method's plan is an error, not a record."""
    problem = load_saved(SHORT)
    solve = library.specopt.solve

    def wrong(problem: object, method: Any, **options: Any) -> Any:
        result = solve(problem, method, **options)
        return replace(result, bound=0.5 * result.objective) if method.name == "pareto" else result

    monkeypatch.setattr(library.specopt, "solve", wrong)
    with pytest.raises(AssertionError, match="pareto gives the bound"):
        library.best_found(problem, 5.0)


def test_saved_text_is_strict() -> None:
    """Tests that a line without a digest is refused."""
    with pytest.raises(msgspec.ValidationError, match="problem_sha256"):
        msgspec.json.decode(
            b'{"name": "a/b/c", "size": "small", "seed": 1, "parameters": {}}', type=SavedInstance
        )
