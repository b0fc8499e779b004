"""Kept results, judged again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.command_line import CommandLine

from specopt import generate, save
from specopt.api.library import load_saved, saved
from specopt.comparison import worker
from specopt.comparison.cell import Record
from specopt.comparison.compare import cells_of
from specopt.comparison.store import Store, judged_again
from specopt.solvers.serving_latency.baselines import StaticBatching

OF_LIBRARY = saved("draft-allocation")[0]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A folder of two instances, one of them of the library, and its records."""
    folder = tmp_path_factory.mktemp("kept")
    problems = {
        "mine": generate("serving-latency/paper-1", tasks=5, seed=1),
        OF_LIBRARY: load_saved(OF_LIBRARY),
    }
    store = Store(folder)
    for cell in cells_of(
        [StaticBatching(size=2), "water-level"], problems, time_limit=600.0, gap=0.0, seeds=(0,)
    ):
        store.keep(cell.problem_sha256, cell.problem)
        store.append(Record.of(cell, **worker.answer((cell, []))))
    store.close()
    return folder, [one.to_dict() for one in store.records().values()]


@pytest.fixture
def changed(lines: tuple[Path, list[dict[str, Any]]], cli: CommandLine) -> Callable[..., None]:
    """Write the records again, that of serving latency with other values, beside the same
    problems.
    """

    def write(**values: Any) -> None:
        folder, records = lines
        Path("problems").symlink_to(folder / "problems")
        texts = [
            json.dumps(one | (values if one["kind"] == "serving-latency" else {})) + "\n"
            for one in records
        ]
        Path("records-x.jsonl").write_text("".join(texts))

    return write


def test_a_folder_keeps_what_a_reviewer_needs(lines: tuple[Path, list[dict[str, Any]]]) -> None:
    """Tests that a record has plan, stats and versions, and that a problem outside the library is a
    file.
    """
    folder, records = lines
    by = {one["kind"]: one for one in records}
    assert [path.stem for path in (folder / "problems").iterdir()] == [
        by["serving-latency"]["problem_sha256"]
    ]
    for one in records:
        assert one["plan"] and one["stats"] and one["versions"]


def test_all_plans_are_as_recorded(cli: CommandLine, changed: Callable[..., None]) -> None:
    """Tests that what was not changed is judged as it was, of the library and of one's own."""
    changed()
    said = "2 of 2 records have a plan; 2 agree with the judge\n"
    assert cli("compare . --again").out == said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"objective": 1.5}, "objective: 1.5 in the record, "),
        ({"bound": 1e9}, "bound: 1000000000.0 in the record, refuted by its plan"),
        ({"gap": 0.125, "bound": 1.0}, "gap: 0.125 in the record, "),
        (
            {"status": "optimal", "bound": None, "gap": None},
            "status: optimal in the record, feasible by its plan and bound",
        ),
        ({"problem_sha256": "0"}, "problems/0.json does not exist"),
        ({"plan": {"batches": 3}}, "batches"),
    ],
)
def test_what_differs_is_said(
    cli: CommandLine, changed: Callable[..., None], values: dict[str, Any], said: str
) -> None:
    """Tests that each number that the judge does not confirm is named, and the command ends with
    1.
    """
    changed(**values)
    shown = cli("compare . --again", 1).out
    assert said in shown and "static-batching size=2 on mine, seed 0" in shown
    assert shown.endswith("2 of 2 records have a plan; 1 agree with the judge\n")
    found = cli("compare . --again --json", 1).json
    assert sum(bool(one["differences"]) for one in found) == 1


def test_a_problem_of_another_digest_is_refused(changed: Callable[..., None]) -> None:
    """Tests that a file that no longer holds the problem whose digest is its name is said, and not
    judged by.
    """
    changed()
    (digest,) = (path.stem for path in Path("problems").iterdir())
    Path("problems").unlink()
    Path("problems").mkdir()
    save(generate("serving-latency/paper-1", tasks=5, seed=2), f"problems/{digest}.json")
    said = [wrong for _, wrong in judged_again(Store(".")) if wrong]
    assert len(said) == 1 and "contains another problem, whose digest is" in said[0][0]


def test_old_records_have_no_plan(cli: CommandLine, changed: Callable[..., None]) -> None:
    """Tests that a record of an earlier version is said to have no plan, and is no difference."""
    changed(plan=None)
    said = "1 records of earlier versions have an objective but no plan and were not judged"
    assert said in cli("compare . --again").out
