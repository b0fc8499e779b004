"""The instance library on the command line: looked at, taken out, and results held against what is
known.
"""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from helpers.command_line import CommandLine

from specopt import load, save, solve
from specopt.api import library
from specopt.api.library import SavedInstance, load_saved, saved, saved_instance
from specopt.models.result import Result


@pytest.fixture
def name() -> str:
    """A small instance whose plan is saved."""
    return next(
        one for one in saved("draft-allocation") if saved_instance(one).best.plan is not None
    )


def test_lists_and_shows(cli: CommandLine, name: str) -> None:
    """Tests that every instance is listed, and that one is shown with where it comes from and what
    is known.
    """
    listed = cli("library list draft-allocation --json").json
    assert [one["name"] for one in listed] == saved("draft-allocation")
    shown = cli(f"library show {name} --json").json
    assert shown in listed and shown["objective"] == saved_instance(name).best.objective
    assert "best bound" in cli(f"library show {name}").out


def test_the_list_has_whole_names_and_gaps(cli: CommandLine) -> None:
    """Tests that no name and no gap in the list is cut, and that numbers of an instance are
    followed by what they are.
    """
    header, *rows = (line.split() for line in cli("library list").out.splitlines())
    assert header == ["instance", "size", "version", "objective", "gap", "by"]
    assert [row[0] for row in rows] == saved()
    assert {"proven", "%"} <= {cell for row in rows for cell in row}
    shown = cli(f"library show {saved('draft-allocation')[0]}").out
    assert "every plan has an objective of at most this, by" in shown


def test_real_instances_say_their_source() -> None:
    """Tests that instances of version 2 hold real data, name origin and licence, and that many are
    open.
    """
    new = [one for name in saved() if (one := saved_instance(name)).size == "real"]
    assert len(new) >= 60
    assert all(one.version == 2 and one.source and one.problem for one in new)
    assert sum(one.best.status != "optimal" for one in new) >= len(new) / 4
    assert load_saved(new[0].name).notes == new[0].source


def test_every_line_has_its_version() -> None:
    """Tests that each line of the library's files says since which version it is there."""
    lines = [
        line
        for path in files("specopt.instances.data.library").iterdir()
        if path.name.endswith(".jsonl")
        for line in path.read_bytes().splitlines()
    ]
    assert {msgspec.json.decode(line)["version"] for line in lines} == {1, 2}


def test_an_instance_is_taken_out(cli: CommandLine, name: str) -> None:
    """Tests that the exported file is the instance, and that an unknown name is refused with those
    there are.
    """
    cli(f"library export {name} -o problem.json")
    assert load("problem.json") == load_saved(name)
    cli.refuses("library export draft-allocation/nothing -o problem.json", "nothing")


def result_of(name: str) -> Result:
    """The result of an instance's best known method."""
    return solve(load_saved(name))


def test_a_result_that_is_no_better(cli: CommandLine, name: str) -> None:
    """Tests that a result as good as the best known is judged, and that nothing is written."""
    save(result_of(name), "result.json")
    said = cli(f"library submit {name} result.json -o line.json").out
    assert said.count("no better than the best known") == 2 and "nothing to merge" in said
    assert not Path("line.json").exists()


def test_a_better_result_becomes_a_line(
    cli: CommandLine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a better plan and bound are written as the line of the library, with who found
    them.
    """
    known = saved_instance(name)
    best = dataclasses.replace(
        known.best,
        objective=0.99 * known.best.objective,
        bound=1.01 * known.best.objective,
        status="feasible",
    )
    worse = dataclasses.replace(known, best=best)
    monkeypatch.setattr(library, "saved_instance", lambda asked: worse)
    result = result_of(name)
    save(result, "result.json")
    said = cli(f"library submit {name} result.json -o line.json").out
    assert said.count("; better than the best known") == 2
    line = msgspec.json.decode(Path("line.json").read_bytes(), type=SavedInstance)
    assert (line.best.objective, line.best.status) == (result.objective, "optimal")
    assert line.best.method == result.by and line.best.plan == (
        result.plan and result.plan.to_dict()
    )


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"objective": None}, 0, "no better than"),
        ({"bound": 1e-3}, 2, "is refuted by"),
        ({"problem_sha256": "0" * 64}, 2, "problem_sha256: the result belongs to another problem"),
    ],
)
def test_what_is_submitted_is_judged(
    cli: CommandLine, name: str, change: dict[str, object], code: int, message: str
) -> None:
    """Tests that bounds that the best plan passes, and results of other problems, are refused."""
    Path("result.json").write_text(json.dumps(result_of(name).to_dict() | change))
    printed = cli(f"library submit {name} result.json", code)
    assert message in printed.out + printed.err
