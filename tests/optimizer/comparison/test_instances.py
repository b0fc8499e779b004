"""What a comparison runs on: names of instances from files and folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specopt import InvalidInput, generate, save
from specopt.api.library import saved, saved_instance
from specopt.comparison.instances import instances_of


def test_files_of_one_name_are_all_taken(tmp_path: Path) -> None:
    """Tests that folders and files of the same name in different places do not hide each other."""
    problems = [generate("draft-allocation/uniform", seed=seed) for seed in range(4)]
    files = [tmp_path / f"{place}/mine/1.json" for place in "abcd"]
    for problem, file in zip(problems, files, strict=True):
        file.parent.mkdir(parents=True)
        save(problem, file)
    found = instances_of([str(files[0].parent), str(files[1].parent), str(files[2]), str(files[3])])
    assert {problem.sha256 for problem in found.values()} == {
        problem.sha256 for problem in problems
    }
    assert list(found)[::2] == ["mine/1", "1"]


def test_parameters_are_swept() -> None:
    """Tests that every combination of values is generated, as the names say."""
    found = instances_of(
        ["serving-latency/paper-1"], instances=2, parameters=["tasks=4,6", "bandwidth=1e7"]
    )
    assert {name: problem.sha256 for name, problem in found.items()} == {
        f"serving-latency/paper-1[tasks={tasks},bandwidth=1e7]/{seed}": generate(
            "serving-latency/paper-1", seed=seed, tasks=tasks, bandwidth=1e7
        ).sha256
        for tasks in (4, 6)
        for seed in (0, 1)
    }


def test_instances_of_the_library_by_size() -> None:
    """Tests that a size takes the library's instances of that size, all of them and no others."""
    found = instances_of(["draft-allocation"], size="paper")
    assert list(found) == [
        name for name in saved("draft-allocation") if saved_instance(name).size == "paper"
    ]
    assert 0 < len(found) < len(saved("draft-allocation"))


@pytest.mark.parametrize(
    ("source", "given", "message"),
    [
        (
            "library",
            {"parameters": ["tasks=4"]},
            "--param: expected a family among the instances, got library",
        ),
        (
            "serving-latency/paper-1",
            {"size": "paper"},
            "--size: expected library or a kind among the instances",
        ),
        (
            "library",
            {"size": "big"},
            "--size: expected one of adversarial, large, paper, .*, got 'big'",
        ),
        (
            "serving-latency/paper-1",
            {"parameters": ["tasks=4,many"]},
            "--param tasks: expected an integer",
        ),
        (
            "draft-allocation/uniform",
            {"parameters": ["tasks=4"]},
            "--param tasks: draft-allocation/uniform has no such",
        ),
    ],
)
def test_what_fits_no_source_is_refused(source: str, given: dict[str, Any], message: str) -> None:
    """Tests that parameters and sizes that no source has are named before anything is generated."""
    with pytest.raises(InvalidInput, match=message):
        instances_of([source], **given)
