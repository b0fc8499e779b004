"""`specopt reproduce`: what it lists, writes and refuses."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from specopt.cli import run
from specopt.models.errors import MissingDependency
from specopt.reproductions import paper_5, registry
from specopt.reproductions.artefact import Artefact, Claim


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that without a paper, or with --list, papers and figures are listed, also as JSON."""
    assert run(["reproduce"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in registry.PAPERS)
    assert run(["reproduce", "paper-5", "--list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"paper-5": ["figure-3", "figure-4"]}


def test_one_figure_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that data, picture and page are written, and that the paragraph is printed."""
    folder = tmp_path / "new" / "folder"
    assert run(["reproduce", "paper-4", "figure-1", "--quick", "-o", str(folder)]) == 0
    said = capsys.readouterr()
    assert "Reproduced. " in said.out and "figure-1" in said.out
    assert sorted(path.name for path in folder.iterdir()) == [
        "figure-1.csv",
        "figure-1.png",
        "paper-4-figure-1.json",
        "paper-4-figure-1.md",
    ]
    with (folder / "figure-1.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 7 and float(rows[0]["printed"]) == 0.28
    assert (folder / "figure-1.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "paper-4-figure-1.md").read_text()
    assert "![figure-1](figure-1.png)" in page and "verdicts mean nothing" in page


def test_tables_have_no_picture_and_json_is_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a prefix means several, that --json prints JSON alone, and that tables write data alone."""
    assert run(["reproduce", "paper-2", "table-12", "--json", "-o", str(tmp_path)]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one["verdict"] == "not reproduced" and one["rows"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "paper-2-table-12.json",
        "paper-2-table-12.md",
        "table-12.csv",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["paper-7"], "paper: expected one of paper-1, paper-2, paper-3, paper-4, paper-5, got 'paper-7'"),
        (["paper-5", "figure-9"], "figure: expected one of figure-3, figure-4, got 'figure-9'"),
        (["paper-5", ""], "figure: expected one of figure-3, figure-4, got ''"),
        (["paper-1", "--seeds", "1"], "seeds: expected at least 2, got 1"),
        (["paper-5", "--seeds", "0"], "seeds: expected at least 1, got 0"),
        (["paper-5", "--seeds", "many"], "expected an integer >= 0"),
    ],
)
def test_nonsense_is_one_message(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that unknown names and bad numbers exit with 2 and one line, and write nothing."""
    assert run(["reproduce", *arguments, "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_folders_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests that a folder that cannot be made is named before anything is computed."""
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "below"):
        assert run(["reproduce", "paper-5", "-o", str(place)]) == 2
        assert f"{place}: cannot be made" in capsys.readouterr().err


def test_interruption_keeps_what_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that Ctrl-C leaves the finished figures and the page about them, and exits with 130."""

    def one_then_stop(*_: object, **__: object) -> Iterator[Artefact]:
        yield Artefact(name="table-1", title="one", rows=[{"a": 1}], claims=[Claim(text="it is", holds=True)])
        raise KeyboardInterrupt

    monkeypatch.setattr(paper_5, "reproduce", one_then_stop)
    assert run(["reproduce", "paper-5", "-o", str(tmp_path)]) == 130
    assert (tmp_path / "table-1.csv").read_text() == "a\n1\n"
    assert "Reproduced. It is: yes." in (tmp_path / "paper-5.md").read_text()
    said = capsys.readouterr()
    assert "1 of 1" in said.out and said.err.endswith("specopt: interrupted\n")


def test_without_matplotlib(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that without matplotlib data and page are written, that this is said once, and no picture is claimed."""

    def refuse() -> None:
        raise MissingDependency("pictures need matplotlib")

    def two(*_: object, **__: object) -> Iterator[Artefact]:
        for name in ("figure-1", "figure-2"):
            yield Artefact(name=name, title="t", rows=[{"a": None}], claims=[], draw=refuse)  # type: ignore[arg-type]

    monkeypatch.setattr(paper_5, "reproduce", two)
    assert run(["reproduce", "paper-5", "-o", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "figure-1.csv",
        "figure-2.csv",
        "paper-5.json",
        "paper-5.md",
    ]
    assert "![" not in (tmp_path / "paper-5.md").read_text()
    said = capsys.readouterr().err
    assert said.count("pictures need matplotlib") == 1
    assert said.endswith("paper-5.md, paper-5.json, data\n")
