"""What a comparison runs on: names of instances from files and folders."""

from __future__ import annotations

from pathlib import Path

from specopt import generate, save
from specopt.comparison.instances import instances_of


def test_files_of_one_name_are_all_taken(tmp_path: Path) -> None:
    """Tests that folders and files of the same name in different places do not hide each other."""
    problems = [generate("draft-allocation/uniform", seed=seed) for seed in range(4)]
    files = [tmp_path / f"{place}/mine/1.json" for place in "abcd"]
    for problem, file in zip(problems, files, strict=True):
        file.parent.mkdir(parents=True)
        save(problem, file)
    found = instances_of([str(files[0].parent), str(files[1].parent), str(files[2]), str(files[3])])
    assert {problem.sha256 for problem in found.values()} == {problem.sha256 for problem in problems}
    assert list(found)[::2] == ["mine/1", "1"]
