"""The optimum along a field, in Python and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.command_line import CommandLine

import specopt
from specopt import Front, InvalidInput, ServingLatencyProblem, Status, front, generate, solve


def test_every_point_is_the_optimum(small: ServingLatencyProblem) -> None:
    """Tests that each point is what solving its problem gives, proven, and begins with the plan
    before.
    """
    values = [5e6, 1e7, 4e7]
    found = front(small, "bandwidth_hz", values)
    assert isinstance(found, Front) and found.values == tuple(values)
    for value, result in zip(values, found.results, strict=True):
        alone = solve(type(small).from_dict(small.to_dict() | {"bandwidth_hz": value}))
        assert result.status is Status.OPTIMAL and result.problem_sha256 == alone.problem_sha256
        assert result.objective == pytest.approx(alone.objective, rel=1e-9)
    assert "warm start" in found.results[1].by
    assert [row["bandwidth_hz"] for row in found.to_arrow().to_pylist()] == values
    assert (
        json.loads(json.dumps(found.to_dict()))["points"][2]["objective"]
        == found.results[2].objective
    )


def test_a_name_in_a_list_is_of_all_parts() -> None:
    """Tests that a path sets a field of every part of a list, and a number one part alone."""
    problem = generate("draft-control/random", states=3, max_draft=4, seed=1)
    assert isinstance(problem, specopt.DraftControlProblem)
    found = front(problem, "states.uplink_bits_per_second", [1e4, 1e6])
    one = front(problem, "states.0.uplink_bits_per_second", [1e4])
    low, high = (result.objective for result in found.results)
    assert low is not None and high is not None and low < high
    assert one.results[0].objective is not None and low < one.results[0].objective


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("bandwith_hz", [1.0], "bandwith_hz: unknown field"),
        ("bandwidth_hz", [1e7, -1.0], "bandwidth_hz: expected"),
        ("bandwidth_hz", [], "values: expected at least one value"),
        ("draft.nobody.x", [1], "no field or index 'nobody' at this path"),
        ("bandwidth_hz.x", [1], "'x' follows a value that has no fields"),
    ],
)
def test_what_is_no_field_is_named(
    small: ServingLatencyProblem, field: str, values: list[float], message: str
) -> None:
    """Tests that wrong fields and values are refused before anything is solved."""
    with pytest.raises(InvalidInput, match=message):
        front(small, field, values)


def test_on_the_command_line(cli: CommandLine, small: ServingLatencyProblem) -> None:
    """Tests that table, JSON and picture are made, and that wrong values are refused."""
    specopt.save(small, "problem.json")
    line = "front problem.json --field bandwidth_hz --values"
    shown = cli(f"{line} 1e7,2e7,3e7 -o front.svg").out
    assert "auto (plan: warm start, bound: exact)" in shown
    assert "bandwidth_hz" in Path("front.svg").read_text()
    points = cli(f"{line} '1e7, 2e7' --json").json["points"]
    assert [point["value"] for point in points] == [1e7, 2e7]
    cli.refuses(f"{line} 1e7:2e7", "bandwidth_hz: expected")
