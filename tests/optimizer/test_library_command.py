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

from specopt import load, save, solve
from specopt.api import library
from specopt.api.library import SavedInstance, load_saved, saved, saved_instance
from specopt.commands.cli import run
from specopt.models.result import Result


@pytest.fixture
def name() -> str:
    """A small instance whose plan is saved."""
    return next(
        one for one in saved("draft-allocation") if saved_instance(one).best.plan is not None
    )


def test_lists_and_shows(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Tests that every instance is listed, and that one is shown with where it comes from and what
    is known.
    """
    assert run(["library", "list", "draft-allocation", "--json"]) == 0
    listed = json.loads(capfd.readouterr().out)
    assert [one["name"] for one in listed] == saved("draft-allocation")
    assert run(["library", "show", name, "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert shown in listed and shown["objective"] == saved_instance(name).best.objective
    assert run(["library", "list"]) == 0 and name in capfd.readouterr().out
    assert run(["library", "show", name]) == 0 and "best bound" in capfd.readouterr().out


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


def test_an_instance_is_taken_out(name: str, tmp_path: Path) -> None:
    """Tests that the exported file is the instance, and that an unknown name is refused with those
    there are.
    """
    path = tmp_path / "problem.json"
    assert run(["library", "export", name, "-o", str(path)]) == 0
    assert load(path) == load_saved(name)
    assert run(["library", "export", "draft-allocation/nothing", "-o", str(path)]) == 2


def result_of(name: str) -> Result:
    """The result of an instance's best known method."""
    return solve(load_saved(name))


def worse(monkeypatch: pytest.MonkeyPatch, name: str, by: float) -> SavedInstance:
    """Make what is known of an instance worse than what is found."""
    known = saved_instance(name)
    best = dataclasses.replace(
        known.best,
        objective=known.best.objective * (1 - by),
        bound=known.best.objective * (1 + by),
        status="feasible",
    )
    found = dataclasses.replace(known, best=best)
    monkeypatch.setattr(library, "saved_instance", lambda asked: found)
    return found


def test_a_result_that_is_no_better(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tests that a result as good as the best known is judged, and that nothing is written."""
    save(result_of(name), tmp_path / "result.json")
    assert (
        run(
            [
                "library",
                "submit",
                name,
                str(tmp_path / "result.json"),
                "-o",
                str(tmp_path / "line.json"),
            ]
        )
        == 0
    )
    said = capfd.readouterr().out
    assert said.count("no better than the best known") == 2 and "nothing to merge" in said
    assert not (tmp_path / "line.json").exists()


def test_a_better_result_becomes_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tests that a better plan and bound are written as the line of the library, with who found
    them.
    """
    worse(monkeypatch, name, 0.01)
    result = result_of(name)
    save(result, tmp_path / "result.json")
    assert (
        run(
            [
                "library",
                "submit",
                name,
                str(tmp_path / "result.json"),
                "-o",
                str(tmp_path / "line.json"),
            ]
        )
        == 0
    )
    assert capfd.readouterr().out.count("; better than the best known") == 2
    line = msgspec.json.decode((tmp_path / "line.json").read_bytes(), type=SavedInstance)
    assert (line.best.objective, line.best.status) == (result.objective, "optimal")
    assert line.best.method == result.by and line.best.plan == (
        result.plan and result.plan.to_dict()
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": None}, "no better than"),
        ({"bound": 1e-3}, "bound: .* is passed by"),
        ({"problem_sha256": "0" * 64}, "problem_sha256: the result belongs to another problem"),
    ],
)
def test_what_is_submitted_is_judged(
    change: dict[str, object],
    message: str,
    name: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Tests that bounds that the best plan passes, and results of other problems, are refused."""
    import re

    data = result_of(name).to_dict() | change
    (tmp_path / "result.json").write_text(json.dumps(data))
    code = run(["library", "submit", name, str(tmp_path / "result.json")])
    out, err = capfd.readouterr()
    assert code == (0 if "objective" in change else 2)
    assert re.search(message, out + err)
