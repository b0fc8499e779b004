"""Kept results judged anew, and solved again: what a reviewer asks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specopt import compare, generate, save
from specopt.api.library import load_saved, saved
from specopt.commands.cli import run
from specopt.comparison.again import judged_again, same_objective
from specopt.comparison.store import Store
from specopt.solvers.serving_latency.static_batching import StaticBatching

OF_LIBRARY = saved("draft-allocation")[0]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A folder of two instances, one of them of the library, and its records."""
    folder = tmp_path_factory.mktemp("kept")
    problems = {"mine": generate("serving-latency/paper-1", tasks=5, seed=1), OF_LIBRARY: load_saved(OF_LIBRARY)}
    compare([StaticBatching(size=2), "water-level"], problems, folder=folder, jobs=1, time_limit=600.0)
    return folder, [one.to_dict() for one in Store(folder).records().values()]


@pytest.fixture
def changed(lines: tuple[Path, list[dict[str, Any]]], tmp_path: Path) -> Callable[..., str]:
    """Write the records again, that of serving latency with other values, beside the same problems."""

    def write(**values: Any) -> str:
        folder, records = lines
        (tmp_path / "problems").symlink_to(folder / "problems")
        texts = [json.dumps(one | (values if one["kind"] == "serving-latency" else {})) + "\n" for one in records]
        (tmp_path / "records-x.jsonl").write_text("".join(texts))
        return str(tmp_path)

    return write


def test_a_folder_keeps_what_a_reviewer_needs(lines: tuple[Path, list[dict[str, Any]]]) -> None:
    """Tests that a record has plan, stats, command and machine, and that a problem outside the library is a file."""
    folder, records = lines
    by = {one["kind"]: one for one in records}
    assert [path.stem for path in (folder / "problems").iterdir()] == [by["serving-latency"]["problem_sha256"]]
    for one in records:
        assert one["plan"] and one["stats"] and one["command"] and one["machine"] and one["versions"]


def test_all_plans_are_as_recorded(changed: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that what was not changed is judged as it was, of the library and of one's own."""
    assert run(["compare", changed(), "--again"]) == 0
    assert capsys.readouterr().out == "2 of 2 records have a plan; 2 are as the judge finds them\n"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"objective": 1.5}, "objective: 1.5 in the record, "),
        ({"bound": 1e9}, "bound: 1000000000.0 in the record, refuted by its plan"),
        ({"gap": 0.125, "bound": 1.0}, "gap: 0.125 in the record, "),
        ({"status": "optimal", "bound": None, "gap": None}, "status: optimal in the record, but its bound"),
        ({"problem_sha256": "0"}, "/problems/0.json, or an instance of the library"),
        ({"plan": {"batches": 3}}, "batches"),
    ],
)
def test_what_differs_is_said(
    values: dict[str, Any], said: str, changed: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that each number that the judge does not confirm is named, and the command ends with 1."""
    folder = changed(**values)
    assert run(["compare", folder, "--again"]) == 1
    shown = capsys.readouterr().out
    assert said in shown and "static-batching size=2 on mine, seed 0" in shown
    assert shown.endswith("2 of 2 records have a plan; 1 are as the judge finds them\n")
    assert run(["compare", folder, "--again", "--json"]) == 1
    assert [bool(one["differences"]) for one in json.loads(capsys.readouterr().out)].count(True) == 1


def test_a_problem_of_another_digest_is_refused(changed: Callable[..., str]) -> None:
    """Tests that a file that no longer holds the problem whose digest is its name is said, and not judged by."""
    folder = Path(changed())
    (digest,) = (path.stem for path in (folder / "problems").iterdir())
    (folder / "problems").unlink()
    (folder / "problems").mkdir()
    save(generate("serving-latency/paper-1", tasks=5, seed=2), folder / "problems" / f"{digest}.json")
    said = [one.differences for one in judged_again(Store(folder)) if one.differences]
    assert len(said) == 1 and "expected one whose digest is the name of" in said[0][0]


def test_old_records_have_no_plan(changed: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a record of an earlier version is said to have no plan, and is no difference."""
    assert run(["compare", changed(plan=None), "--again"]) == 0
    assert "1 of earlier versions have an objective, but no plan: not judged" in capsys.readouterr().out


def test_a_cell_is_solved_again(
    lines: tuple[Path, list[dict[str, Any]]], changed: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a cell is found by how its key begins, solved with its options, shown twice and not kept."""
    folder, records = lines
    key = next(one["key"] for one in records if one["kind"] == "serving-latency")
    assert run(["compare", str(folder), "--rerun", key[:12], "--json"]) == 0
    old, new = json.loads(capsys.readouterr().out)
    assert old["options"] == new["options"] == {"size": 2}
    assert old["plan"] == new["plan"] and old["started"] <= new["started"]
    assert len(Store(folder).records()) == 2
    assert run(["compare", changed(objective=1.5), "--rerun", key[:12]]) == 1
    shown = capsys.readouterr().out
    assert "static-batching size=2 on mine" in shown and f"objective: 1.5 | again: {new['objective']}\n" in shown


def test_rounding_is_no_difference(lines: tuple[Path, list[dict[str, Any]]]) -> None:
    """Tests that objectives of any size are the same if they differ in the tenth digit, and not in the eighth."""
    record = next(iter(Store(lines[0]).records().values()))
    for size in (1e6, 1e-6):
        for other, same in ((1.0 + 2e-10, True), (1.0 + 2e-8, False)):
            assert same_objective(replace(record, objective=size), replace(record, objective=other * size)) is same


@pytest.mark.parametrize(
    ("key", "values", "said"),
    [
        ("", {}, "--rerun: expected the key of one cell, got ''"),
        ("zz", {}, "with which none begins"),
        ("x", {"key": "x", "method": "gone"}, "--rerun: serving-latency has no method 'gone' here"),
        ("x", {"key": "x", "options": {"gone": 1}}, "--rerun: static-batching has no option 'gone' here"),
        ("x", {"key": "x", "options": {"size": "many"}}, "size: expected"),
    ],
)
def test_what_cannot_be_solved_again_is_named(
    key: str, values: dict[str, Any], said: str, changed: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that a key of no or of several cells, and a method or option that is not here, are one message."""
    assert run(["compare", changed(**values), "--rerun", key]) == 2
    assert said in capsys.readouterr().err
