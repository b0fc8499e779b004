"""Tables and summaries of a comparison, by hand; its files; its pictures; the command."""

from __future__ import annotations

import itertools
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import CommandLine
from helpers.records import record

from specopt import generate, save
from specopt.comparison.profiles import gap_profile, profile_figure, time_profile
from specopt.comparison.summary import shifted_geometric_mean, summaries, time_of, who_wins
from specopt.comparison.table import Comparison
from specopt.report.comparison import comparison_page


@pytest.fixture
def comparison() -> Comparison:
    """Two methods on three instances: one proves, one fails once."""
    return Comparison(
        [
            record("exact", "a/1", 100.0, 100.0, seconds=4.0),
            record("exact", "a/2", 100.0, 90.0, seconds=10.0),
            record("exact", "b/1", None, 50.0, seconds=10.0),
            record("algorithm-1", "a/1", 110.0, seconds=0.1),
            record("algorithm-1", "a/2", 95.0, 80.0, seconds=0.1),
            record(
                "algorithm-1",
                "b/1",
                None,
                status="failed",
                seconds=None,
                error="killed",
                wall_seconds=15.0,
            ),
        ]
    )


def test_gaps_are_to_the_best_bound_of_any_method(comparison: Comparison) -> None:
    """Tests that gaps, wins and proofs use what every method found."""
    by = {(r.method, r.instance): r for r in comparison}
    assert comparison.gap(by["algorithm-1", "a/1"]) == pytest.approx(10 / 110)
    assert comparison.gap(by["algorithm-1", "a/2"]) == pytest.approx(5 / 95)
    assert comparison.gap(by["exact", "b/1"]) is None
    assert comparison.wins(by["algorithm-1", "a/2"])
    assert not comparison.wins(by["exact", "a/2"])
    assert comparison.proven(by["exact", "a/1"])
    assert not comparison.proven(by["exact", "a/2"])


def test_failures_count(comparison: Comparison) -> None:
    """Tests that shares are of all cells, and that a failure takes at least its time limit."""
    rows = {row.label: row for row in summaries(comparison)}
    exact, paper = rows["exact"], rows["algorithm-1"]
    assert (exact.cells, exact.failed, exact.without_plan, exact.refused) == (3, 0, 1, 0)
    assert (paper.cells, paper.failed, paper.without_plan, paper.refused) == (3, 1, 0, 0)
    assert exact.proven == pytest.approx(1 / 3)
    assert paper.wins == pytest.approx(1 / 3)
    assert paper.largest_gap == pytest.approx(10 / 110)
    assert paper.seconds == pytest.approx(shifted_geometric_mean([0.1, 0.1, 15.0]))
    failed = next(r for r in comparison if r.failed)
    assert time_of(failed) == 15.0
    assert who_wins(comparison) == {
        "a": {"algorithm-1": 0.5, "exact": 0.5},
        "b": {"algorithm-1": 0.0, "exact": 0.0},
    }


def test_a_page_begins_with_who_wins(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that a page says first who has the best plans, of equals who proves more, and then what
    failed.
    """
    monkeypatch.setattr("specopt.report.page.can_draw", lambda: False)
    winner, failed = comparison_page(comparison, ()).lead
    assert (
        winner == "serving-latency: exact found the best plan in 33 % of the runs and proved 33 %"
        " optimal or infeasible; the mean gap to the best bound is 5 %."
    )
    assert failed.startswith("1 of 6 runs failed")


def test_methods_are_averaged_over_the_same_cells() -> None:
    """Tests that averages are over cells that all took, and that shares of all count refusals and
    failures.
    """
    found = Comparison(
        [
            record("exact", "a/1", 100.0, 100.0, seconds=4.0),
            record("exact", "a/2", 100.0, 100.0, seconds=4.0),
            record("rough", "a/1", 125.0, seconds=1.0),
            record("rough", "a/2", None, status="failed", seconds=None, wall_seconds=1.0),
            record("rough", "b/3", 80.0, 40.0, seconds=9.0),
            record("rough", "b/3", 80.0, 40.0, seconds=9.0, seed=1),
        ],
        known={},
    )
    exact, rough = summaries(found)
    assert [
        (row.label, row.cells, row.all_cells, row.refused, row.failed) for row in (exact, rough)
    ] == [
        ("exact", 2, 4, 2, 0),
        ("rough", 2, 4, 0, 1),
    ]
    assert (exact.wins, exact.proven, exact.all_wins, exact.all_proven) == (1.0, 1.0, 0.5, 0.5)
    assert (rough.wins, rough.proven, rough.all_wins, rough.all_proven) == (0.0, 0.0, 0.5, 0.0)
    assert (exact.mean_gap, rough.mean_gap, rough.largest_gap) == (0.0, 0.2, 0.2)
    assert exact.seconds == pytest.approx(4.0)
    assert rough.seconds == pytest.approx(shifted_geometric_mean([1.0, 10.0]))
    assert who_wins(found) == {"a": {"exact": 1.0, "rough": 0.0}, "b": {"rough": 1.0}}
    for profile in (gap_profile(found, "serving-latency"), time_profile(found, "serving-latency")):
        assert [len(values) for values in profile.values()] == [4, 4]
        assert np.isinf(profile["exact"]).tolist() == [False, False, True, True]
    nothing_shared = Comparison(
        [record("exact", "a/1", 1.0), record("rough", "a/2", 2.0)], known={}
    )
    assert [
        (row.cells, row.wins, row.seconds, row.all_wins) for row in summaries(nothing_shared)
    ] == [(0, None, None, 0.5)] * 2


def test_a_proof_of_infeasibility_is_an_answer() -> None:
    """Tests that it counts as proven, wins and keeps its time, while a quick end without a plan
    takes its limit.
    """
    proof = record("exact", "a", None, status="infeasible", seconds=0.5)
    nothing = record("algorithm-1", "a", None, seconds=0.01)
    comparison = Comparison([proof, nothing], known={})
    rows = {row.label: row for row in summaries(comparison)}
    exact, paper = rows["exact"], rows["algorithm-1"]
    assert (exact.without_plan, exact.proven, exact.wins) == (0, 1.0, 1.0)
    assert (paper.without_plan, paper.proven, paper.wins) == (1, 0.0, 0.0)
    assert (time_of(proof), time_of(nothing)) == (0.5, 10.0)
    assert gap_profile(comparison, "serving-latency")["exact"].tolist() == [0.0]
    assert time_profile(comparison, "serving-latency")["algorithm-1"].tolist() == [math.inf]


def test_profiles_keep_what_failed(comparison: Comparison) -> None:
    """Tests that profiles have every cell, unsolved ones at infinity, and the fastest at 1."""
    gaps = gap_profile(comparison, "serving-latency")
    assert gaps["algorithm-1"] == pytest.approx(np.array([5 / 95, 10 / 110, math.inf]))
    times = time_profile(comparison, "serving-latency")
    assert times["exact"].tolist() == [1.0, math.inf, math.inf]
    assert len(profile_figure(comparison).charts) == 2


def test_profiles_can_be_read() -> None:
    """Tests that a dozen methods are told apart, gaps of rounding are drawn as the least, and no
    labels overlap.
    """
    records = [
        record(f"m{i:02}", "a", 10.0 * (1 + 10.0 ** (i - 10)), bound=10.0, seconds=2.0**i)
        for i in range(12)
    ]
    picture = profile_figure(Comparison(records, known={}))
    gaps, times = picture.charts
    for chart in (gaps, times):
        assert chart.title.startswith("serving-latency: ")
        encoding = chart.spec["encoding"]
        looks = zip(
            encoding["color"]["scale"]["range"],
            encoding["strokeDash"]["scale"]["range"],
            strict=True,
        )
        assert len(set(looks)) == 12
    starts: dict[str, float] = {}
    for row in gaps.rows:
        starts.setdefault(row["method"], row["gap (%)"])
    assert [starts[f"m{i:02}"] for i in range(4)] == pytest.approx(
        [1e-4] * 4
    )  # gaps of 1e-10 to 1e-7
    assert starts["m05"] > 1e-4
    axes = re.findall('role-axis-label".*?</g>', picture._repr_html_())
    assert len(axes) == 4
    for axis in axes:
        label = (
            r'anchor="(\w+)" transform="translate\(([-.\d]+),([-.\d]+)\)"[^>]*opacity="1">([^<]+)<'
        )
        boxes = [label_box(*found) for found in re.findall(label, axis)]
        assert len(boxes) >= 3
        for (left, right, y), (other, end, height) in itertools.combinations(boxes, 2):
            assert right < other or end < left or abs(y - height) >= 12.0


def label_box(anchor: str, x: str, y: str, text: str) -> tuple[float, float, float]:
    """Return left and right end of a label and its height on the paper: 12 pixels high, at most 7 a
    character.
    """
    width = 7.0 * len(text)
    left = float(x) - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
    return left, left + width, float(y)


def test_a_file_holds_every_record(comparison: Comparison, tmp_path: Path) -> None:
    """Tests that Parquet has a row per record, and that a comparison without records has the same
    columns.
    """
    from pyarrow import parquet

    comparison.to_parquet(tmp_path / "c.parquet")
    table = parquet.read_table(tmp_path / "c.parquet").to_pylist()
    assert [(row["key"], row["objective"]) for row in table] == [
        (one.key, one.objective) for one in comparison
    ]
    assert table == comparison.rows()
    empty = Comparison([]).to_arrow()
    assert empty.num_rows == 0 and empty.schema.equals(comparison.to_arrow().schema)


@pytest.mark.usefixtures("in_this_process")
def test_command(cli: CommandLine) -> None:
    """Tests that the command runs files, folders and families, prints a summary and leaves its
    files.
    """
    Path("mine").mkdir()
    for seed in (1, 2):
        save(generate("serving-latency/paper-1", tasks=5, seed=seed), f"mine/{seed}.json")
    line = (
        "compare mine draft-allocation/uniform --instances 1 --jobs 2 -o out"
        " --method static-batching:size=2 --method algorithm-1 --method water-level"
    )
    shown = cli(line).out
    assert "serving-latency: 2 instances" in shown
    assert "static-batching size=2" in shown
    assert {path.name for path in Path("out").iterdir()} >= {"comparison.parquet", "profiles.png"}
    assert len(cli(f"{line} --json").json) == 5


@pytest.mark.usefixtures("in_this_process")
def test_a_picture_is_claimed_only_where_it_is_written(
    cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that where nothing can draw one line says what to install, and tables are written all
    the same.
    """
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    said = cli("compare draft-allocation/uniform --instances 1 --method greedy -o out").err
    assert said.count("pip install 'specopt[plot]'") == 1
    assert said.endswith("written to out: comparison.parquet\n")


@pytest.mark.parametrize("options", ["-o out", ""])
def test_an_interruption_before_the_first_record(
    options: str, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that Ctrl-C before there is anything to summarise ends with 130 and one line."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("specopt.commands.compare.run_comparison", interrupted)
    said = cli(f"compare draft-allocation/uniform {options}", 130).err
    assert said == "specopt: interrupted\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nothing", "nothing: expected a problem file, a folder, a family"),
        ("draft-allocation/uniform --method exact", "--method: expected one or more of"),
        (
            "draft-allocation/uniform --method greedy:size=1",
            "--method greedy: unknown option 'size'",
        ),
        ("draft-allocation/uniform --instances 0", "instances: expected an integer >= 1"),
        ("draft-allocation/uniform --shard 3", "shard: expected"),
        ("draft-allocation/uniform --shard 0/2", "shard: expected"),
        ("draft-allocation/uniform --shard 3/2", "shard: expected"),
    ],
)
def test_bad_usage_is_one_message(cli: CommandLine, words: str, message: str) -> None:
    """Tests that what cannot be compared exits with 2 and one message."""
    cli.refuses(f"compare {words}", message)


@pytest.mark.usefixtures("in_this_process")
def test_a_twin_is_not_left_out(cli: CommandLine) -> None:
    """Tests that only instances that no method takes are listed as left out, not a second file of
    one problem.
    """
    Path("mine").mkdir()
    for name in ("one", "twin"):
        save(generate("draft-allocation/uniform", seed=0), f"mine/{name}.json")
    save(generate("serving-latency/paper-1", tasks=2), "mine/other.json")
    shown = cli("compare mine --method greedy --jobs 1").out
    assert "1 instances that none of the methods can solve: mine/other" in shown
