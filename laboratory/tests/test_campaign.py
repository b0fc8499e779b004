"""A campaign with the tiny pair, from measurements to the comparison."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from oracles.laboratory_records import check_record

from testbed.__main__ import run
from testbed.records import read_record

ARGUMENTS = ["play", "serving-latency", "--set", "tasks=[3]", "--set", "repeats=2", "--records"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of a campaign."""
    folder = tmp_path_factory.mktemp("records")
    assert run([*ARGUMENTS, str(folder)]) == 0
    (found,) = folder.iterdir()
    return found


def test_record_holds_what_it_claims(path: Path) -> None:
    """Tests that predictions, runtimes, acceptance and outputs of a new record follow from its raw
    numbers.
    """
    data = read_record(path)
    check_record(data)
    assert {trial["label"] for trial in data["trials"]} == {
        "pipelined",
        "sequential",
        "autoregressive",
    }
    assert all(len(trial["measured"]) == 2 for trial in data["trials"])
    assert all(
        run["differences"] == [] for trial in data["trials"] for run in trial["measured"]
    )  # in float64: exactly


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("prompt-chunking", ["prompt_tokens=[30]", "uplink_bits_per_second=[4e5]"]),
        ("draft-control", ["factors=[1.0]"]),
        ("verification-batch", ["requests=12"]),
        ("fair-goodput", []),
        ("placement", []),
    ],
)
def test_every_kind_leaves_a_record_that_holds(
    kind: str, settings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that plays of every kind produce records that follow from their raw numbers, and that
    `compare` shows them.
    """
    options = [f"--set={one}" for one in [*settings, "repeats=1"]]
    assert run(["play", kind, *options, "--records", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    data = read_record(path)
    check_record(data)
    assert all(
        one.get("differences", []) == [] for trial in data["trials"] for one in trial["measured"]
    )
    capsys.readouterr()
    assert run(["compare", str(path)]) == 0
    assert kind in capsys.readouterr().out


def test_a_campaign_that_was_cut_short_plays_the_rest(path: Path) -> None:
    """Tests that a campaign that is begun again plays only the missing trials, and measures nothing
    again.
    """
    data = read_record(path)
    cut: dict[str, Any] = json.loads(path.read_text())
    cut["trials"][1]["measured"] = cut["trials"][1]["measured"][:1]
    path.write_text(json.dumps(cut))
    assert run([*ARGUMENTS, str(path.parent)]) == 0
    again = read_record(path)
    assert len(again["trials"][1]["measured"]) == 2
    for name in set(data) - {"trials"}:
        assert again[name] == data[name]
    assert [trial for index, trial in enumerate(again["trials"]) if index != 1] == [
        trial for index, trial in enumerate(data["trials"]) if index != 1
    ]


def test_comparison_is_printed_and_drawn(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests that `compare` shows quantities, gains, terms and differences, as a table, as JSON and
    as a picture.
    """
    pytest.importorskip("vl_convert")
    picture = tmp_path / "picture.png"
    assert run(["compare", str(path), "--picture", str(picture)]) == 0
    shown = capsys.readouterr().out
    for word in ("total seconds", "first token seconds", "no-batching", "between", "0 of "):
        assert word in shown
    assert picture.stat().st_size > 10_000
    assert run(["compare", str(path), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["differences"]["differing"] == 0
    assert {row["quantity"] for row in found["summaries"]} >= {
        "total_seconds",
        "first_token_seconds",
    }
